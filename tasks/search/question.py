"""A question and its gold answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A question, all answers that count, and the titles of the passages that give it, if known."""

    text: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As reports name an episode."""
        return self.text
