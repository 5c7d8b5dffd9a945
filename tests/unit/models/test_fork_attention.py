"""Attention to shared histories against torch's attention to a copy for each row."""

from __future__ import annotations

import torch

from colearn.models.fork_attention import ForkMask, fork_attention, in_groups

OWNERS = [1, 0, 1, 1, 0]
"""Three rows continue history 1, two history 0, in no order."""


def test_rows_stand_beside_those_of_the_same_history() -> None:
    members, places = in_groups(OWNERS, 2)
    assert members == [1, 4, 0, 0, 2, 3]  # a free place repeats row 0
    assert places == [3, 0, 4, 5, 1]


def test_a_history_that_no_row_continues_has_free_places_only() -> None:
    assert in_groups([2, 2], 3) == ([0, 0, 0, 0, 0, 1], [4, 5])


def test_shared_histories_give_what_copies_give() -> None:
    torch.manual_seed(0)
    heads, key_heads, width, length, own = 4, 2, 8, 7, 3
    query = torch.randn(5, heads, 1, width)
    keys, values = torch.randn(2, 2, key_heads, length, width)
    key, value = torch.randn(2, 5, key_heads, own, width)
    visible = torch.rand(5, 1, 1, length + own) < 0.6
    visible[..., -1] = True
    members, places = map(torch.tensor, in_groups(OWNERS, 2))
    mask = ForkMask.of(lambda: (keys, values), members, places, visible)
    result = fork_attention(query, key, value, mask, 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query,
        torch.cat([keys[OWNERS], key], 2),
        torch.cat([values[OWNERS], value], 2),
        attn_mask=visible,
        scale=0.3,
        enable_gqa=True,
    )
    torch.testing.assert_close(result, expected.transpose(1, 2), rtol=1e-5, atol=1e-6)
