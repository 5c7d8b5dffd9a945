"""Rounds: assigns micro-batches to ranks so that collectives stay in step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from colearn.contract.rows import Row

Micro = list[tuple[int, int, Row]]
"""A micro-batch: (group, place in it, row)."""
Numbered = tuple[int, Micro]
"""A micro-batch with its number in the minibatch."""
Round = list[Numbered]
"""At most one micro-batch per process, by rank."""


def rounds(micros: Iterable[Numbered], processes: int, *, alike: bool) -> Iterator[Round]:
    """Up to `processes` micro-batches at a time, in order.

    With `alike` all micro-batches of a round have the same kind: actions, marks, both or neither.
    Gradients then arrive in the same order in every process, in which ZeRO-2 fills its buckets;
    another order would add up gradients of different weights.
    """
    kinds: dict[tuple[bool, bool], Round] = {}
    for number, micro in micros:
        kinds.setdefault(contents(micro) if alike else (True, True), []).append((number, micro))
    for same_kind in kinds.values():
        for start in range(0, len(same_kind), processes):
            yield same_kind[start : start + processes]


def contents(micro: Micro) -> tuple[bool, bool]:
    """Whether any row has actions, and whether any has marks."""
    return (
        any(row.action_tokens for _, _, row in micro),
        any(row.marks for _, _, row in micro),
    )
