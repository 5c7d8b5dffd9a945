"""Attention of one or a few new tokens per row, in which several heads share keys."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from colearn.models.tree_attention import tree_attention

MODULE = SimpleNamespace(num_key_value_groups=3, is_causal=True)


def rows(heads, tokens):
    return torch.randn(4, heads, tokens, 8, dtype=torch.float64)


@pytest.mark.parametrize("scale", [None, 0.2])
@pytest.mark.parametrize("tokens", [1, 3])
def test_each_head_attends_to_the_keys_of_its_group_that_the_token_sees(scale, tokens):
    torch.manual_seed(0)
    query, key, value = rows(6, tokens), rows(2, 10), rows(2, 10)
    mask = torch.rand(4, 1, tokens, 10) < 0.6
    mask[..., 0] = True
    found, _ = tree_attention(MODULE, query, key, value, mask, scaling=scale)
    for head in range(6):
        scores = query[:, head] @ key[:, head // 3].mT * (8**-0.5 if scale is None else scale)
        weights = scores.masked_fill(~mask[:, 0], -torch.inf).softmax(-1)
        expected = weights @ value[:, head // 3]
        assert torch.allclose(found[:, :, head], expected, atol=1e-12)


def test_a_limit_of_scores_is_left_to_transformers_which_refuses_it():
    mask = torch.ones(4, 1, 1, 10, dtype=torch.bool)
    with pytest.raises(ValueError, match="softcap"):
        tree_attention(MODULE, rows(6, 1), rows(2, 10), rows(2, 10), mask, softcap=30.0)


def test_supervised_training_drops_weights_of_attention_however_large_the_keys_are() -> None:
    module = SimpleNamespace(num_key_value_groups=1, is_causal=True)
    query, keys = torch.ones(1, 2, 4, 8), torch.ones(1, 2, 2**14, 8)
    mask = torch.ones(1, 1, 4, 2**14, dtype=torch.bool)
    found, _ = tree_attention(module, query, keys, keys, mask, dropout=0.5)
    assert found.std() > 1e-3  # each query kept other weights; without dropout all results are 1
