"""Rounds: assigns micro-batches to ranks so that collectives stay in step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from colearn.contract.rows import Row

Micro = list[tuple[int, int, Row]]
"""A micro-batch: rows with the number of their group and their place there."""
Numbered = tuple[int, Micro]
"""A micro-batch with its number in the minibatch."""
Round = list[Numbered]
"""Up to one micro-batch for each process, by rank."""


def rounds(micros: Iterable[Numbered], processes: int, *, alike: bool) -> Iterator[Round]:
    """Up to `processes` micro-batches at a time, in their order.

    `alike`: those of a round have both, actions only, marks only or neither, so that all processes
    reach the same weights in the same order. ZeRO-2 fills its buckets in the order in which
    gradients arrive, so another order would add up unlike weights.
    """
    kinds: dict[tuple[bool, bool], Round] = {}
    for number, micro in micros:
        kinds.setdefault(contents(micro) if alike else (True, True), []).append((number, micro))
    for found in kinds.values():
        for start in range(0, len(found), processes):
            yield found[start : start + processes]


def contents(micro: Micro) -> tuple[bool, bool]:
    """Whether any row has actions, and whether any has marks."""
    return (
        any(row.action_tokens for _, _, row in micro),
        any(row.marks for _, _, row in micro),
    )
