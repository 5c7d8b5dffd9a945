"""AgentSpec: a record of an agent's sampling, window, model, adapter and chat format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.contract import Sampling

from .chat_format import ChatFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Settings of an agent that a language model plays, as used by the generator, the update, exact
    evaluation and the dry run."""

    sampling: Sampling = field(default_factory=Sampling)
    window: int | None = None
    model: str | None = None
    """Name of the model that plays the agent."""
    adapter: str | None = None
    """Name of the agent's adapter on that model."""
    chat: ChatFormat | None = None
    """Chat format; None if the tokenizer is not needed or not on this machine."""
    positions: int | None = None
    """Maximum length of the model's input in tokens; None: unknown."""
    training_temperature: Callable[[float], float] | None = None
    """Temperature as a function of the used fraction of the training budget; None: the temperature
    of `sampling`."""

    def temperature_at(self, done: float) -> float:
        """Return the rollout temperature after the fraction `done` of the training budget."""
        if self.training_temperature is None:
            return self.sampling.temperature
        return self.training_temperature(done)

    @property
    def chat_format(self) -> ChatFormat:
        """The value of `chat`, which must be set."""
        assert self.chat is not None, "this spec was made without a tokenizer"
        return self.chat
