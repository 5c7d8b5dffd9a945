"""Token engine contract: ids in, ids and log-probabilities out, weights loaded on update."""

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
    """Also defines the log-probabilities; temperature 0 is greedy."""
    seed: int
    """The draw is a function of the seed, the prompt and the weights alone."""
    end_ids: frozenset[int]
    """Ids that end the action and belong to it; those of the model folder are ignored."""
    lane: int = 0
    """Number of the engine's replica that answers, below `TokenEngine.lanes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """An action: it ends with an end id, with the token that completes a stop string, or at its
    maximum length."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    cached: int = 0
    """Prompt tokens taken from the engine's prefix cache."""


class TokenEngine(ABC):
    """Runs one base model and its adapters from its own copy of the weights.

    Agents, texts and histories are handled by `TokenGenerator`, which also checks after every
    `load` that log-probabilities match the trained model's.
    """

    name: str
    """Name in error messages."""

    @property
    def place(self) -> Hashable:
        """Engines with equal places take turns."""
        return id(self)

    @property
    def lanes(self) -> int:
        """Number of replicas with a prefix cache each; a history stays on one of them."""
        return 1

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Maximum tokens of a prompt and its action together."""

    @abstractmethod
    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """One answer per request, in order; requests run concurrently."""

    @abstractmethod
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Load weights and discard everything computed with the previous ones."""

    @classmethod  # noqa: B027 - most take every role
    def check_role(cls, agent: str, role: Voice) -> None:
        """Called before an engine starts. Errors: ConfigError for a role it does not support."""

    def close(self) -> None:  # noqa: B027 - not every engine holds something outside of Python
        """Stop the engine; it cannot be used afterwards."""
