"""Explained variance of the critic in an update, by turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colearn.contract import AgentValues, Critic, Episodes
from colearn.contract.asking import item_name
from colearn.record.fields import CriticLine, CriticTurn
from colearn.types import Credited, Tree
from colearn.value_model.ceiling import return_groups
from colearn.value_model.item_means import Offsets, added
from colearn.value_model.judgement import Pair, pairs

_BINS = 10


@dataclass(slots=True)
class CriticWatch:
    """Collects the values that an update has read, each tree once, and sums them up."""

    critic: Critic
    _told: dict[int, tuple[Credited[Any], AgentValues]] = field(default_factory=dict)

    def add(
        self, numbers: Sequence[int], episodes: Episodes, values: Sequence[AgentValues]
    ) -> None:
        """Values of the trees `numbers`; `episodes` are all of the iteration's."""
        for number, by_agent in zip(numbers, values, strict=True):
            self._told.setdefault(number, (episodes[number], by_agent))

    def take(self, iteration: int, trees: Sequence[Tree[Any]], offsets: Offsets) -> CriticLine:
        """The line of this update; `offsets` are the means by item and turn of every tree."""
        numbers, of_state = list(self._told), self.critic.of_state
        episodes = [self._told[number][0] for number in numbers]
        values = [self._told[number][1] for number in numbers]
        self._told.clear()
        own = [trees[number] for number in numbers]
        empty = [{agent: _zeros(series) for agent, series in one.items()} for one in values]
        means = added(self.critic, own, empty, [offsets[number] for number in numbers])
        told = list(pairs(episodes, values, of_state=of_state, single=True))
        by_item = list(pairs(episodes, means, of_state=of_state, single=True))
        groups = return_groups(episodes, [item_name(tree.item) for tree in own])
        turns = sorted({pair.turn for pair in told})
        return CriticLine(
            iteration=iteration,
            turns=tuple(
                _turn(
                    turn,
                    [pair for pair in told if pair.turn == turn],
                    [pair for pair in by_item if pair.turn == turn],
                    [group for some in groups.get(turn, {}).values() for group in some],
                )
                for turn in turns
            ),
            calibration=_calibration(told),
        )


def _zeros(series: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(None if value is None else 0.0 for value in series)


def _turn(
    turn: int, told: Sequence[Pair], by_item: Sequence[Pair], groups: Sequence[Sequence[float]]
) -> CriticTurn:
    actual = np.array([pair.actual for pair in told])
    errors = actual - np.array([pair.value for pair in told])
    item_errors = actual - np.array([pair.value for pair in by_item])
    return CriticTurn(
        turn=turn,
        number=len(told),
        variance=float(np.var(actual)),
        error_variance=float(np.var(errors)),
        error_square=float(np.mean(errors**2)),
        item_error_variance=float(np.var(item_errors)),
        within=sum(float(np.var(group)) * len(group) for group in groups),
        freedom=sum(len(group) - 1 for group in groups),
    )


def _calibration(told: Sequence[Pair]) -> tuple[tuple[float, float, int], ...]:
    if not told:
        return ()
    ordered = np.array(sorted((pair.value, pair.actual) for pair in told))
    parts = [part for part in np.array_split(ordered, _BINS) if len(part)]
    return tuple((float(p[:, 0].mean()), float(p[:, 1].mean()), len(p)) for p in parts)
