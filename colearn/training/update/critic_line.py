"""Explained variance of the critic in an update, by turn: a line of critic.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from colearn.contract import AgentValues, Critic, Episodes
from colearn.contract.checked_task import item_name
from colearn.methods.values.ceiling import return_groups
from colearn.methods.values.explained_variance import Pair, pairs
from colearn.methods.values.item_means import Offsets, scaled
from colearn.runs.record.fields import CriticLine, CriticTurn

_BINS = 10


def critic_line(
    critic: Critic,
    iteration: int,
    values: Mapping[int, AgentValues],
    trees: Episodes,
    item_means: Offsets,
) -> CriticLine:
    """Returns the line of the update that ends at `iteration`. `values` are the values that the
    update has read, by tree number; `item_means` are the mean returns by item and turn for every
    tree."""
    episodes, of_state = [trees[number] for number in values], critic.of_state
    offsets = [item_means[number] for number in values]
    means = scaled(critic, episodes, list(values.values()), offsets, [{}] * len(episodes))
    by_critic = list(pairs(episodes, list(values.values()), of_state=of_state, single=True))
    by_item = list(pairs(episodes, means, of_state=of_state, single=True))
    groups = return_groups(episodes, [item_name(tree.item) for tree in episodes])
    turns = sorted({pair.turn for pair in by_critic})
    return CriticLine(
        iteration=iteration,
        turns=tuple(
            _turn(
                turn,
                [pair for pair in by_critic if pair.turn == turn],
                [pair for pair in by_item if pair.turn == turn],
                [group for item_groups in groups.get(turn, {}).values() for group in item_groups],
            )
            for turn in turns
        ),
        calibration=_calibration(by_critic),
    )


def _turn(
    turn: int, by_critic: Sequence[Pair], by_item: Sequence[Pair], groups: Sequence[Sequence[float]]
) -> CriticTurn:
    actual = np.array([pair.actual for pair in by_critic])
    errors = actual - np.array([pair.value for pair in by_critic])
    item_errors = actual - np.array([pair.value for pair in by_item])
    return CriticTurn(
        turn=turn,
        number=len(by_critic),
        variance=float(np.var(actual)),
        error_variance=float(np.var(errors)),
        error_square=float(np.mean(errors**2)),
        item_error_variance=float(np.var(item_errors)),
        within=sum(float(np.var(group)) * len(group) for group in groups),
        freedom=sum(len(group) - 1 for group in groups),
    )


def _calibration(by_critic: Sequence[Pair]) -> tuple[tuple[float, float, int], ...]:
    if not by_critic:
        return ()
    ordered = np.array(sorted((pair.value, pair.actual) for pair in by_critic))
    parts = [part for part in np.array_split(ordered, _BINS) if len(part)]
    return tuple((float(p[:, 0].mean()), float(p[:, 1].mean()), len(p)) for p in parts)
