"""LoRA on mixtures of experts, whose routers and experts are parameters and no linear layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny import SIZES, byte_tokenizer
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from colearn.config import LoRASettings
from colearn.errors import ConfigError
from colearn.estimate.ledger import rehearsal
from colearn.models.base import Base

IDS = torch.arange(5, 29).reshape(4, 6)
SHAPE = {
    **{key: value for key, value in SIZES.items() if key != "head_dim"},
    "vocab_size": len(byte_tokenizer()),
    "num_experts_per_tok": 2,
    "initializer_range": 0.2,
}
KINDS: dict[str, Any] = {
    "qwen3_moe": lambda: Qwen3MoeForCausalLM(
        Qwen3MoeConfig(**SHAPE, num_experts=4, moe_intermediate_size=16)
    ),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**SHAPE, num_local_experts=4)),
    "olmoe": lambda: OlmoeForCausalLM(OlmoeConfig(**SHAPE, num_experts=4)),
    "deepseek_v3": lambda: DeepseekV3ForCausalLM(
        DeepseekV3Config(
            **SHAPE | {"num_key_value_heads": SIZES["num_attention_heads"]},
            **{"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16},
            **{"q_lora_rank": 8, "kv_lora_rank": 8, "v_head_dim": 8, "first_k_dense_replace": 1},
            **{"qk_rope_head_dim": 4, "qk_nope_head_dim": 4},
        )
    ),
    "glm4_moe": lambda: Glm4MoeForCausalLM(
        Glm4MoeConfig(
            **SHAPE, n_routed_experts=4, moe_intermediate_size=16, first_k_dense_replace=1
        )
    ),
}
TARGETS = ("all-linear", ["gate"], ["gate_proj", "up_proj", "down_proj"])


def adapted(kind: str, targets: Any) -> Base:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        base = Base(KINDS[kind](), torch.float32)
        for name in ("ada", "ben"):
            base.add_adapter(name, LoRASettings(rank=2, targets=targets))
            for parameter in base.adapter_parameters(name).values():
                torch.nn.init.normal_(parameter, std=0.3)
    return base


@pytest.mark.parametrize(
    ("kind", "targets"),
    [
        *((kind, targets) for kind in ("qwen3_moe", "olmoe") for targets in TARGETS),
        ("mixtral", "all-linear"),
        ("mixtral", ["w1", "w2", "w3"]),
        # their routers take rows and return tokens
        *((kind, targets) for kind in ("deepseek_v3", "glm4_moe") for targets in TARGETS[:2]),
    ],
)
def test_a_batch_of_several_adapters_is_that_of_each_alone(kind: str, targets: Any) -> None:
    base = adapted(kind, targets)
    rows = ["ada", None, "ben", "ada"]
    with torch.no_grad():
        with base.using(rows):
            mixed = base.hidden(IDS)
        for row, adapter in enumerate(rows):
            with base.using(adapter):
                alone = base.hidden(IDS[row : row + 1])[0]
            torch.testing.assert_close(mixed[row], alone, rtol=0, atol=1e-4)
            if adapter is not None:
                with base.using(None):
                    assert (base.hidden(IDS[row : row + 1])[0] - alone).abs().max() > 0.01
        with base.using("ben"):
            again = base.hidden(IDS[2:3])[0]
        torch.testing.assert_close(again, mixed[2], rtol=0, atol=1e-4)


def test_other_experts_for_a_second_adapter_are_one_line() -> None:
    base = adapted("qwen3_moe", "all-linear")
    with pytest.raises(
        ConfigError, match=r"^lora\.targets: adapters on one mixture of experts must"
    ):
        base.add_adapter("cy", LoRASettings(rank=2, targets=["gate"]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_dry_run_multiplies_experts_of_every_type(dtype: torch.dtype) -> None:
    """Six tokens of width 8 by two experts with 16 outputs: 96 numbers."""
    with rehearsal() as ledger:
        states, experts = torch.empty(6, 8, dtype=dtype), torch.empty(2, 8, 16, dtype=dtype)
        ends = torch.tensor([4, 6], dtype=torch.int32)
        before = ledger.live
        result = torch.nn.functional.grouped_mm(states, experts, offs=ends)
        assert (result.shape, result.dtype) == ((6, 16), dtype)
        assert ledger.live - before == 96 * dtype.itemsize
