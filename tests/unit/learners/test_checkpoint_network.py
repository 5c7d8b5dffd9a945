"""Weights of a checkpoint that a network takes, and checkpoints that do not fit it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from colearn.errors import CheckpointError
from colearn.training.learners.checkpoint_files import WEIGHTS, load_weights

load_actor = partial(load_weights, head=False, other="give it the base")


def written(folder: Path, **weights: Tensor) -> Path:
    save_file({name.replace("_", "."): one for name, one in weights.items()}, folder / WEIGHTS)
    return folder


def test_an_actor_takes_its_weights_and_leaves_the_critics_head(tmp_path: Path) -> None:
    w = torch.zeros(2)
    written(tmp_path, w=torch.tensor([1.0, 2.0]), head_v=torch.ones(3))
    load_actor(tmp_path, {"w": w})
    assert w.tolist() == [1.0, 2.0]
    with pytest.raises(CheckpointError, match=r"first difference: head\.v"):
        load_weights(tmp_path, {"w": w})


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"w": torch.zeros(3)}, r"w has shape \(3,\), the model \(2,\); give it the base"),
        ({"w": torch.zeros(2), "x": torch.zeros(1)}, r"\(first difference: x\); give it the base"),
        ({"v": torch.zeros(2)}, r"\(first difference: v\); give it the base"),
    ],
    ids=["another shape", "one more", "another name"],
)
def test_weights_of_another_base_are_named(
    weights: dict[str, Tensor], words: str, tmp_path: Path
) -> None:
    w = torch.tensor([4.0, 5.0])
    with pytest.raises(CheckpointError, match=words):
        load_actor(written(tmp_path, **weights), {"w": w})
    assert w.tolist() == [4.0, 5.0]
