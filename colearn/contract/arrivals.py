"""Continuous batching: requests that arrive while earlier ones are answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
AskedOut = TypeVar("AskedOut", covariant=True)
AnswerIn = TypeVar("AnswerIn", contravariant=True)


class Arrivals(Protocol[AskedOut, AnswerIn]):
    """Requests that arrive at any time. Its methods are called in the thread that answers."""

    @property
    def waiting(self) -> int:
        """Upper bound on the number of requests that `take` would return."""

    def take(self) -> Sequence[AskedOut]:
        """Remove and return the requests that wait."""

    def answer(self, number: int, answer: AnswerIn) -> None:
        """Deliver the answer to a request; `number` counts the requests taken before it."""


class Given(Generic[Asked, Answer]):
    """Arrivals that all wait from the start."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._asked = asked
        self._answers: dict[int, Answer] = {}

    @property
    def waiting(self) -> int:
        return len(self._asked)

    def take(self) -> Sequence[Asked]:
        asked, self._asked = self._asked, ()
        return asked

    def answer(self, number: int, answer: Answer) -> None:
        self._answers[number] = answer

    @property
    def answers(self) -> list[Answer]:
        """All answers, in the order of the requests."""
        return [self._answers[number] for number in range(len(self._answers))]


def answer_in_batches(
    arrivals: Arrivals[Asked, Answer], batch: Callable[[Sequence[Asked]], Sequence[Answer]]
) -> None:
    """Answer requests until none waits, one batch after the other."""
    first = 0
    while asked := arrivals.take():
        for number, (_, answer) in enumerate(zip(asked, batch(asked), strict=True), first):
            arrivals.answer(number, answer)
        first += len(asked)
