"""Blocks of logits, for the 151,936 words of Qwen3."""

from __future__ import annotations

import pytest
import torch

from colearn.models.logits import LEAST, MOST, for_memory, logits_at_once

WORDS = 151_936


def test_a_cpu_computes_the_logits_of_110_tokens_at_once():
    assert logits_at_once(torch.device("cpu")) // WORDS == 110


@pytest.mark.parametrize(
    ("size", "tokens"), [(80 * 2**30, 2208), (24 * 2**30, 662), (192 * 2**30, 3533)]
)
def test_an_accelerator_computes_those_of_more_tokens_by_its_memory(size, tokens):
    # 2**38.3 bytes / 256; a block in bfloat16 and three times in float32 has 14 bytes an element
    assert for_memory(size) // WORDS == tokens
    assert 14 * for_memory(size) < size / 15


def test_a_small_device_computes_no_fewer_than_a_cpu():
    assert for_memory(2**30) == LEAST < MOST
