"""An agent that a language model plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.contract import Sampling

from .chat import ChatFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """An agent as all see it who work with its model: the generator, the update, exact evaluation
    and the dry run. Each reads the fields it needs."""

    sampling: Sampling = field(default_factory=Sampling)
    window: int | None = None
    model: str | None = None
    """The name of its physical model."""
    adapter: str | None = None
    """The adapter by which the model speaks for it."""
    chat: ChatFormat | None = None
    """How it is spoken to; None where its tokenizer is not needed, or not on this machine."""
    positions: int | None = None
    """The longest text in tokens that the model reads; None: not said."""
    training_temperature: Callable[[float], float] | None = None
    """By the share of the training budget that is used; None: always that of `sampling`."""

    def temperature_at(self, done: float) -> float:
        """Of the rollouts when the share `done` of the training budget was used."""
        if self.training_temperature is None:
            return self.sampling.temperature
        return self.training_temperature(done)

    @property
    def spoken_to(self) -> ChatFormat:
        """`chat`, of a voice that has one."""
        assert self.chat is not None, "this voice was made without a tokenizer"
        return self.chat
