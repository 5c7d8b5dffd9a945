"""Reward function: scores completions of prompts, with TRL's arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

Conversation = Sequence[Mapping[str, str]]
"""Messages as {"role": ..., "content": ...}."""
PromptOrText = str | Conversation
"""Plain text, or messages where the data's prompts are messages."""


class RewardFunction(ABC):
    """A reward part as a frozen dataclass. Importing the dataclass does not import torch.

    An instance is callable with TRL's signature, so it can also be passed in TRL's `reward_funcs`.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the function in metrics: `reward_LABEL`."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of additional metrics, logged as `reward_LABEL_NAME`. A call reports these metrics
        through TRL's `log_metric` hook. A reward function without additional metrics does not
        receive `log_metric`."""
        return ()

    def costs(self) -> Mapping[str, float]:
        """Total use of each resource so far in this process, by name; reports show the totals."""
        return {}

    @abstractmethod
    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        **columns: Any,
    ) -> list[float | None]:
        """One reward per completion; None if the function does not apply.

        `columns` holds lists of the same length: the other columns of the data.
        """


def text_of(prompt: PromptOrText) -> str:
    """Returns the contents of messages, joined by line breaks; returns plain text unchanged."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(message["content"] for message in prompt)
