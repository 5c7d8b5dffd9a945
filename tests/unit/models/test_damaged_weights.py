"""A model whose weights are not finite: one line when it is read, or when it is sampled from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from colearn.contract import Sampling
from colearn.errors import ConfigError
from colearn.generate.sampling import BLOCK, TokenDrawing, read
from colearn.models.load import load_base
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
