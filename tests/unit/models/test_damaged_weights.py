"""A model whose weights are not finite, or whose tokenizer reads no text: one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from colearn.contract import Sampling
from colearn.engines.sampling import BLOCK, TokenDrawing, read
from colearn.errors import ConfigError
from colearn.models.load import load_base, load_tokenizer
from tests.helpers.tiny import save_model


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_one_line(value: float, tmp_path: Path) -> None:
    save_model(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.layers.0.mlp.down_proj.weight"][0, 0] = value
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"models\.a\.path: .*its logits are not finite"):
        load_base(
            str(tmp_path),
            compute="float32",
            trained=False,
            device=torch.device("cpu"),
            field="models.a.path",
        )


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
