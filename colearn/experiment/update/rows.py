"""Training rows of an iteration, by the number of their tree, and what an update adds to the rows
of agents."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from colearn.contract import AgentValues, NodeAdvantages, TokenAdvantages, Values
from colearn.contract.rows import Row
from colearn.types import Tree

Trees = Sequence[Tree[Any]]
ModelRows = dict[int, list[Row]]
"""The rows of an actor or of a value model, by tree number. A minibatch is a set of trees."""


def rows_of(rows: ModelRows, numbers: Iterable[int]) -> list[Row]:
    """The rows of the trees `numbers`."""
    return [row for number in numbers for row in rows.get(number, ())]


def without_states(episode: Tree[Any]) -> Tree[None]:
    """Returns an episode without the task's objects. An update does not read these objects, which
    may not be picklable, so a learner in another process might be unable to receive them."""
    nodes = tuple(replace(node, state=None) for node in episode.nodes)
    return replace(episode, item=None, nodes=nodes)


def with_advantages(
    row: Row,
    advantages: NodeAdvantages | TokenAdvantages,
    targets: AgentValues | None = None,
) -> Row:
    """Returns an agent's row with advantages at its spans (the trained actions) and value targets
    at its marks. Actions without an advantage become context instead of spans."""
    agent = row.reader
    row = _with_spans(row, [agent in advantages[span.node] for span in row.spans])
    return replace(
        row,
        advantages=tuple(
            number for span in row.spans for number in _numbers(advantages[span.node][agent])
        ),
        targets=() if targets is None else at_marks(row, targets[agent]),
    )


def at_marks(row: Row, values: Values) -> tuple[float, ...]:
    """Returns one agent's values at the marks of the agent's row."""
    return tuple(value for mark in row.marks if (value := values[mark.node]) is not None)


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
    )
