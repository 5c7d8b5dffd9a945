"""Seeds of a comparison."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from colearn.errors import ConfigError

_MOST = 10_000
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(max_length=_MOST)]


def first_seeds(count: int, name: str) -> tuple[int, ...]:
    """The seeds of a comparison that says how many: 0 to `count` - 1.

    Errors: ConfigError for fewer than one and for more than a comparison can have.
    """
    if not 1 <= count <= _MOST:
        raise ConfigError(
            f"{name} {count}: is how many seeds, 1 to {_MOST:,}; choose which with "
            f"compare.seeds=[{max(0, count)}]"
        )
    return tuple(range(count))
