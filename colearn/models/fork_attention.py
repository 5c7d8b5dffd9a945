"""Attention of one decoding step for rows that continue a shared history: the keys and values of
that history are read once for all of its rows.

Decoding is bound by the memory that it reads. K rows that fork from a history of n tokens read
n + K m tokens for their m own ones each, in place of K (n + m). The softmax is over both parts at
once, so the result is that of attention over copies, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from einops import rearrange
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

Read = Callable[[], tuple[Tensor, Tensor]]


class ForkMask(Tensor):
    """An empty 4-d mask tensor that carries shared histories through transformers to attention."""

    read: Read
    """Keys and values of the histories [G, key heads, L, D], of the layer that is computed."""
    members: Tensor
    """[G K] Rows of each history, padded with row 0 to K rows per history."""
    places: Tensor
    """[R] Index of each row in `members`."""
    added: Tensor
    """[R, 1, 1, L + own keys] 0, or -inf at keys that the row does not see."""

    @staticmethod
    def of(read: Read, members: Tensor, places: Tensor, visible: Tensor) -> ForkMask:
        """`visible` [R, 1, 1, L + own keys] is bool."""
        with unset_fake_temporarily():  # a dry run: fake tensors cannot be subclassed again
            mask = torch.empty((1, 1, 0, 0), dtype=torch.bool).as_subclass(ForkMask)
        mask.read, mask.members, mask.places = read, members, places
        mask.added = torch.zeros(visible.shape, device=visible.device)
        mask.added = mask.added.masked_fill(~visible, -torch.inf)
        return mask


def in_groups(owners: Sequence[int], histories: int) -> tuple[list[int], list[int]]:
    """`members` and `places` of a `ForkMask`, for rows that continue the histories `owners`."""
    rows: list[list[int]] = [[] for _ in range(histories)]
    for row, owner in enumerate(owners):
        rows[owner].append(row)
    most = max(map(len, rows), default=0)
    members = [row for group in rows for row in (*group, *[0] * (most - len(group)))]
    places = [0] * len(owners)
    for number, group in enumerate(rows):
        for place, row in enumerate(group):
            places[row] = number * most + place
    return members, places


def fork_attention(
    query: Tensor, key: Tensor, value: Tensor, forks: ForkMask, scale: float
) -> Tensor:
    """[R, 1, heads, D] for `query` [R, heads, 1, D] and the rows' own keys and values
    [R, key heads, T, D]."""
    shared_keys, shared_values = forks.read()
    histories, heads, length, _ = shared_keys.shape
    asked = rearrange(query * scale, "row (head times) 1 width -> row head times width", head=heads)

    def grouped(rows: Tensor) -> Tensor:
        return rearrange(
            rows[forks.members],
            "(history fork) head times width -> history head (fork times) width",
            history=histories,
        )

    def apart(groups: Tensor) -> Tensor:
        rows = rearrange(
            groups,
            "history head (fork times) width -> (history fork) head times width",
            times=asked.shape[2],
        )
        return rows[forks.places]

    shared = apart(grouped(asked) @ shared_keys.transpose(-1, -2))
    scores = torch.cat([shared, asked @ key.transpose(-1, -2)], -1)
    weights = (scores.float() + forks.added).softmax(-1).to(value.dtype)
    result = apart(grouped(weights[..., :length]) @ shared_values)
    result += weights[..., length:] @ value
    return rearrange(result, "row head times width -> row 1 (head times) width")
