"""Bases in 4 bits without bitsandbytes: what is refused, and the layer that estimates count."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from colearn.config import load_config, resolve
from colearn.errors import ConfigError, MissingExtra
from colearn.models.quantized import DescribedLinear, describe, keep_layout, nf4

MODEL = {"path": "embedded-tiny", "quantization": "nf4", "lora": {"rank": 2}}


def config_of(changes: dict[str, Any], **sections: Any) -> Any:
    settings = {
        "task": {"name": "dpomdp", "problem": "two_step"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": MODEL},
        **sections,
    }
    return load_config(settings, changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"models.*.lora": None}, "models.agent_1.quantization: weights in 4 bits cannot be tra"),
        (
            {"run.generator": {"name": "transformers", "copy": True}},
            "models.agent_1.quantization: this generator needs weights of its own",
        ),
        ({"run.generator.name": "vllm"}, "models.agent_1.quantization: this generator needs"),
        (
            {
                "algorithm.name": "collm_cc",
                "critic": {"path": "embedded-tiny", "quantization": "nf4"},
            },
            "critic.quantization: weights in 4 bits cannot be trained; set critic.lora",
        ),
    ],
)
def test_a_base_in_4_bits_is_neither_trained_nor_copied(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(config_of(changes))
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)


def test_an_untrained_model_in_4_bits_is_accepted() -> None:
    models = {"*": MODEL, "agent_1": {**MODEL, "lora": None, "trained": False}}
    resolve(config_of({}, models=models))


def test_without_bitsandbytes_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(MissingExtra, match=r"bitsandbytes is not installed: .*\[quantized\]"):
        nf4(torch.float32)


def test_a_described_layer_has_half_a_byte_for_each_weight_and_its_scales() -> None:
    layer = DescribedLinear(nn.Linear(128, 640, bias=False))
    held = sum(one.numel() * one.element_size() for one in layer.parameters())
    assert held == 128 * 640 // 2 + 1280 + 5 * 4  # a byte for 64 weights, 4 for 256 of those


def test_a_described_layer_keeps_no_weights_for_its_gradient() -> None:
    layer = DescribedLinear(nn.Linear(128, 640))
    kept: list[int] = []
    states = torch.zeros(3, 128, requires_grad=True)
    layer.bias = nn.Parameter(torch.zeros(640))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()), lambda t: t):
        result = layer(states)
    assert result.shape == (3, 640) and kept == []
    result.sum().backward()
    assert states.grad is not None and states.grad.shape == (3, 128)


def test_a_described_model_keeps_embeddings_and_head_as_they_are() -> None:
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    describe(model)
    described = {name for name, one in model.named_modules() if isinstance(one, DescribedLinear)}
    assert described == {
        f"model.layers.0.{name}"
        for name in (
            *(f"self_attn.{which}_proj" for which in "qkvo"),
            *(f"mlp.{which}_proj" for which in ("gate", "up", "down")),
        )
    }
    assert type(model.lm_head) is nn.Linear


def test_no_layer_repacks_its_weights() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    for layer in (model[0], model[1][0]):
        layer.support_avx512bf16_for_cpu = True
    keep_layout(model)
    assert not model[0].support_avx512bf16_for_cpu
    assert not model[1][0].support_avx512bf16_for_cpu
