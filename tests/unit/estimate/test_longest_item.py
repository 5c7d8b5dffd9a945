"""The item that a dry run counts the longest episode of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.estimate.script import _longest


class Drawn(Sequence[int]):
    """Items that are drawn when they are read."""

    def __init__(self, turns: Sequence[int]) -> None:
        self.turns, self.read = turns, set[int]()

    def __len__(self) -> int:
        return len(self.turns)

    def __getitem__(self, number: Any) -> Any:
        turns = self.turns[number]
        self.read.add(number)
        return turns


class Turns:
    """An item is its number of turns."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def horizon_of(self, item: Any) -> int:
        return item


def task(horizon: int) -> Any:
    return Turns(horizon)


def test_no_item_is_drawn_behind_one_with_as_many_turns_as_the_task_can_have() -> None:
    items = Drawn([2, 4, 3, 4])
    assert _longest(task(4), items) == 4
    assert items.read == {0, 1}


def test_the_longest_item_is_found_where_none_has_all_turns() -> None:
    assert _longest(task(9), Drawn([2, 4, 3, 5])) == 5
