"""The length that a model reads: one number for training, critics, dry runs and servers."""

from __future__ import annotations

import pytest
from transformers import LlamaConfig

from colearn.config import CriticSettings
from colearn.contract.rotary import steady_positions

LONG = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("rope", "positions"),
    [
        ({"rope_type": "default", "rope_theta": 1e4}, 512),
        ({"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}, 512),
        (LONG | {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}, 64),
    ],
    ids=["default", "dynamic", "longrope"],
)
def test_a_critic_reads_what_a_policy_of_its_kind_reads(rope, positions):
    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        max_position_embeddings=512,
        rope_parameters=rope,
    )
    assert steady_positions(config) == positions
    critic = CriticSettings(path="critic", max_length=300)
    assert critic.longest_stream(config) == min(positions, 300)
