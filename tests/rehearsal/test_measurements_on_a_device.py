"""`benchmarks/gpu.py` on a device in name only: each item ends, and what it compares is equal."""

from __future__ import annotations

import pytest


def test_the_device_computes_what_the_cpu_computes(rehearse):
    gaps = rehearse("gpu_cases:measured", item="parity")["gaps"]
    assert sorted(gaps) == ["Gemma3", "Llama", "Qwen3"]
    assert max(gap for both in gaps.values() for gap in both) <= 1e-5


def test_a_large_tree_by_segments_is_that_by_a_dense_mask(rehearse):
    line = rehearse("gpu_cases:measured", item="large tree")
    assert line["gap"] <= 1e-5
    assert line["tokens"] == 300


@pytest.mark.parametrize(
    "item",
    [
        "decode",
        "decode, one adapter",
        "decode, two adapters",
        "update",
        "blocks of logits",
        "packed trees",
        "memory",
    ],
)
def test_an_item_ends(rehearse, item):
    assert rehearse("gpu_cases:measured", item=item)
