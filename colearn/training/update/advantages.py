"""Weights the advantages of a model's actions and puts them into the model's rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from colearn.contract import (
    Advantage,
    Advantages,
    Episodes,
    NodeAdvantages,
    TokenAdvantages,
)
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Row
from colearn.contract.types import Tree
from colearn.training.learners.reader import Rows

ModelOf = Callable[[Tree[Any], str], str | None]
"""The trained model that plays an agent's seat, if any."""


def equal_groups(
    advantages: Advantages, part: Advantage, episodes: Episodes, model_of: ModelOf
) -> Advantages:
    """Returns advantages multiplied by N / (P n), for a model with N actions in P groups, where n
    is the number of actions in the action's group (`Advantage.weight_group`). The loss's mean over
    actions then equals the mean of the group means."""
    groups: dict[tuple[int, str], tuple[str, Hashable]] = {}
    sizes: Counter[tuple[str, Hashable]] = Counter()
    for place, episode in enumerate(episodes):
        for agent in episode.agents:
            with calling_part("algorithm.advantage", part):
                group = part.weight_group(episode, agent)
            model = model_of(episode, agent)
            acted = sum(agent in by_agent for by_agent in advantages[place])
            if group is not None and model is not None and acted:
                groups[place, agent] = model, group
                sizes[model, group] += acted
    if not groups:
        return advantages
    actions: Counter[str] = Counter()
    counts: Counter[str] = Counter(model for model, _ in sizes)
    for (model, _), size in sizes.items():
        actions[model] += size

    def weighed(place: int, agent: str, advantage: Any) -> Any:
        if (place, agent) not in groups:
            return advantage
        model, _ = key = groups[place, agent]
        return advantage * actions[model] / (counts[model] * sizes[key])

    return [
        tuple(
            {agent: weighed(place, agent, advantage) for agent, advantage in by_agent.items()}
            for by_agent in tree
        )
        for place, tree in enumerate(advantages)
    ]


def with_advantages(rows: Rows, numbers: Sequence[int], advantages: Advantages) -> Rows:
    """Returns the actors' rows of the trees `numbers` with advantages, which are in the order of
    `numbers`. Rows that are neither trained nor read any more are left out."""
    return {
        name: {
            number: [
                advantaged
                for row in model_rows.get(number, ())
                if (advantaged := advantaged_row(row, of_tree)).spans or advantaged.marks
            ]
            for number, of_tree in zip(numbers, advantages, strict=True)
        }
        for name, model_rows in rows.items()
    }


def advantaged_row(row: Row, advantages: NodeAdvantages | TokenAdvantages) -> Row:
    """Returns an agent's row with advantages at its spans (the trained actions). Actions without an
    advantage become context instead of spans."""
    agent = row.reader
    row = _with_spans(row, [agent in advantages[span.node] for span in row.spans])
    return replace(
        row,
        advantages=tuple(
            number for span in row.spans for number in _numbers(advantages[span.node][agent])
        ),
    )


def _numbers(advantage: float | tuple[float, ...]) -> tuple[float, ...]:
    return advantage if isinstance(advantage, tuple) else (advantage,)


def _with_spans(row: Row, mask: Sequence[bool]) -> Row:
    """Returns a row with only the kept spans and the per-token numbers of these spans."""
    if all(mask):
        return row
    sizes = [span.end - span.start for span in row.spans]

    def of_kept(numbers: tuple[float, ...]) -> tuple[float, ...]:
        if not numbers:
            return ()
        iterator = iter(numbers)
        pieces = [list(itertools.islice(iterator, size)) for size in sizes]
        return tuple(
            number for piece, keep in zip(pieces, mask, strict=True) if keep for number in piece
        )

    return replace(
        row,
        spans=tuple(span for span, keep in zip(row.spans, mask, strict=True) if keep),
        behaviour=of_kept(row.behaviour),
        old_logprobs=of_kept(row.old_logprobs),
        ref_logprobs=of_kept(row.ref_logprobs),
        teacher_logprobs=of_kept(row.teacher_logprobs),
    )
