"""A model whose weights are not finite, or whose tokenizer reads no text: one line."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from colearn.contract import Sampling
from colearn.engines.sampling import BLOCK, TokenDrawing, read
from colearn.errors import ConfigError
from colearn.models.load import load_base, load_tokenizer
from tests.helpers.tiny import save_model


def load(folder: Path) -> None:
    load_base(
        str(folder),
        compute="float32",
        trained=False,
        device=torch.device("cpu"),
        field="models.a.path",
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_one_line(value: float, tmp_path: Path) -> None:
    save_model(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.layers.0.mlp.down_proj.weight"][0, 0] = value
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"models\.a\.path: .*its logits are not finite"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        ({"num_hidden_layers": 1}, r"model\.layers\.1\."),
        ({"attention_bias": False}, r"model\.layers\.0\.self_attn\.k_proj\.bias"),
        ({"mlp_bias": False}, r"model\.layers\.0\.mlp\.down_proj\.bias"),
        ({"num_hidden_layers": 2, "num_nextn_predict_layers": 1}, None),
        ({}, None),
    ],
)
def test_weights_that_the_config_leaves_out_are_one_line(
    changed: dict[str, Any], left_out: str | None, tmp_path: Path
) -> None:
    """transformers drops them; logits of a smaller model would be trained on."""
    config = LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=2, attention_bias=True, mlp_bias=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text()) | changed
    (tmp_path / "config.json").write_text(json.dumps(settings))
    told = rf"models\.a\.path: .*config\.json describes a model without {left_out}"
    with nullcontext() if left_out is None else pytest.raises(ConfigError, match=told):
        load(tmp_path)


def test_parts_for_other_media_may_be_left_out(tmp_path: Path) -> None:
    save_model(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.vision_tower.layers.0.mlp.weight"] = torch.zeros(2, 2)
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(2)
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    load(tmp_path)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("size", [7, 3 * BLOCK + 1])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_probabilities_that_are_not_finite_are_one_line(
    value: float, size: int, temperature: float
) -> None:
    """The token was an index behind the vocabulary, which ends the process on a CUDA device."""
    logits = torch.zeros(2, size)
    logits[1, 3] = value
    drawing = TokenDrawing([Sampling(temperature=temperature)] * 2, torch.device("cpu"))
    tokens, scores = drawing.choose(logits, torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert tokens.max() < size
    with pytest.raises(ConfigError, match="probabilities that are not finite"):
        read(tokens, scores)


@pytest.mark.parametrize(
    ("file", "changed", "told"),
    [
        ("tokenizer.json", {"model": {"type": "BPE", "vocab": {}, "merges": []}}, "has no tokens"),
        ("tokenizer_config.json", {"chat_template": 5}, "chat_template is a int, must be text"),
    ],
)
def test_a_tokenizer_that_reads_no_text_is_one_line(
    file: str, changed: dict[str, Any], told: str, tmp_path: Path
) -> None:
    save_model(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    content = json.loads((tmp_path / file).read_text())
    (tmp_path / file).write_text(json.dumps({**content, **changed}))
    with pytest.raises(ConfigError, match=told):
        load_tokenizer(str(tmp_path), field="models.a.path")
