"""Network keys, which consist of a network's role in a run (actor, critic) and its model name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class NetworkKey:
    """Identifies one network of a run and its learner.

    `str(key)` is its folder name in a checkpoint and its name in tables and errors.
    """

    kind: Literal["actor", "critic", "reference", "teacher", "past"]
    model: str
    """Name of the network's physical model; for a critic, name of its value model."""
    slot: int | None = None
    """For a past self: slot of the cast's pool of past selves."""

    def __str__(self) -> str:
        return "-".join(map(str, self._parts))

    @property
    def adapter(self) -> str:
        """Name of the network's adapter on a shared base; the adapter's seed is derived from this
        name."""
        return "_".join(map(str, self._parts))

    @property
    def section(self) -> str:
        """The section of the config that describes the network."""
        return "critic" if self.kind == "critic" else f"models.{self.model}"

    @property
    def _parts(self) -> tuple[str | int, ...]:
        return (self.kind, *(() if self.slot is None else (self.slot,)), self.model)
