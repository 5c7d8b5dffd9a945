"""Network keys: the role of a network in a run (actor, critic) and its model name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class NetworkKey:
    """One network of a run; its learner has the same key.

    Its text is the name of a folder in a checkpoint, and what tables and errors call it.
    """

    kind: Literal["actor", "critic", "reference", "past"]
    model: str
    """The name of its physical model, or of a critic's value model."""
    slot: int | None = None
    """Of the cast's pool, which holds past selves."""

    def __str__(self) -> str:
        return "-".join(map(str, self._parts))

    @property
    def adapter(self) -> str:
        """Its adapter's name on a base that several share; the adapter's seed follows from it."""
        return "_".join(map(str, self._parts))

    @property
    def section(self) -> str:
        """The section of the config that describes it."""
        return "critic" if self.kind == "critic" else f"models.{self.model}"

    @property
    def _parts(self) -> tuple[str | int, ...]:
        return (self.kind, *(() if self.slot is None else (self.slot,)), self.model)
