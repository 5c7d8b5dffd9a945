"""The kinds of generators: the settings of each, and how it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from colearn.contract import Generator, GeneratorKind
from colearn.errors import ConfigError

if TYPE_CHECKING:
    from colearn.agents import Voice
    from colearn.models.base import Base


@dataclass(frozen=True, kw_only=True)
class Transformers(GeneratorKind):
    """The live model itself, in this process."""

    batch_agents: bool = True
    """Agents on one base speak in one batch. False: each in batches of its own, which makes its
    logits the same to the last bit whatever the others say, for 1.1 to 1.9 times the time."""
    max_rows: int | None = None
    """Rows decoded together; others join as rows end. None decodes all of a call at once."""

    def __post_init__(self) -> None:
        _check_positive(max_rows=self.max_rows)

    @property
    def apart(self) -> bool:
        return not self.batch_agents

    def build(self, base: Base, roles: Mapping[str, Voice]) -> Generator:
        from .transformers import TransformersGenerator

        return TransformersGenerator(base, roles, max_rows=self.max_rows)


@dataclass(frozen=True, kw_only=True)
class VLLM(GeneratorKind):
    """A vLLM engine in this process; it batches all agents of a base by itself."""

    cache_gib: float | None = None
    """Memory of the key/value cache in GiB; None: 1 on the CPU, 4 elsewhere."""
    max_length: int | None = None
    """The longest history in tokens; None: the model's, or what the cache holds."""
    max_rows: int = 256
    """Rows decoded together."""
    eager: bool | None = None
    """No graph capture; None: on the CPU."""
    tolerance: float | None = None
    """Largest gap in nats to the trained model's log-probabilities; None goes by the dtype."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, as they are."""

    def __post_init__(self) -> None:
        _check_positive(
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            tolerance=self.tolerance,
        )

    def build(self, base: Base, roles: Mapping[str, Voice]) -> Generator:
        from .token_generator import TokenGenerator, check_roles
        from .vllm import VLLMEngine

        check_roles(VLLMEngine, roles)
        engine = VLLMEngine(
            base,
            roles,
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            eager=self.eager,
            options=self.options,
        )
        return TokenGenerator(base, roles, engine, tolerance=self.tolerance)


def _check_positive(**settings: float | None) -> None:
    for name, number in settings.items():
        if number is not None and number <= 0:
            raise ConfigError(f"{name}: must be above 0, got {number}")
