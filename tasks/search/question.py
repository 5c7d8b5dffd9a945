"""A question and its gold answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A question, all accepted answers, and the titles of its supporting passages, if known."""

    text: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The question text, by which reports name an episode."""
        return self.text
