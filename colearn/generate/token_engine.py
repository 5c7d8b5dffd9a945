"""What an engine must do: ids in, ids and log-probabilities out, weights taken over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from colearn.agents import Voice
from colearn.contract import Sampling, WeightUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """One action to draw after `prompt`."""

    prompt: tuple[int, ...]
    adapter: str | None
    sampling: Sampling
    """Log-probabilities as it says; temperature 0 is greedy."""
    seed: int
    """The draw is a function of the seed, the prompt and the weights alone."""
    end_ids: frozenset[int]
    """Ids that end the action and are part of it; nothing else that a model folder names does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """An action: it ends with an end id, the token that completes a stop string, or at its
    length."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    cached: int = 0
    """Tokens of the prompt that were not run through the model again."""


class TokenEngine(ABC):
    """Runs one base model and its adapters from weights of its own.

    It knows no agents, texts or histories: `TokenGenerator` does, for every engine alike, and
    checks after every `load` that log-probabilities are those of the trained model.
    """

    name: str
    """For errors."""

    @property
    def place(self) -> Hashable:
        """Engines of one place take turns."""
        return id(self)

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Tokens that a prompt and its action can have together."""

    @abstractmethod
    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """One answer for each request, in order; all of them are at work together."""

    @abstractmethod
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Take over weights and forget everything that was computed with the old ones."""

    @classmethod  # noqa: B027 - most take every role
    def check_role(cls, agent: str, role: Voice) -> None:
        """Before an engine is started. Errors: ConfigError for a role that it cannot honour."""

    def close(self) -> None:  # noqa: B027 - not every engine holds something outside of Python
        """Stop; the engine cannot be used afterwards."""
