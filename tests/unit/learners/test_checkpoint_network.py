"""A network that takes a checkpoint's weights, and checkpoints that do not fit it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from colearn.errors import CheckpointError
from colearn.training.learners.checkpoint_network import _copy_weights


def network(**state: Tensor) -> Any:
    """As much of an actor's network as is asked: its weights, and that it has no value head."""
    return SimpleNamespace(head=None, state=lambda: state)


def written(folder: Path, **weights: Tensor) -> Path:
    save_file({name.replace("_", "."): one for name, one in weights.items()}, folder / "weights")
    return folder / "weights"


def test_an_actor_takes_its_weights_and_leaves_the_critics_head(tmp_path: Path) -> None:
    w = torch.zeros(2)
    path = written(tmp_path, w=torch.tensor([1.0, 2.0]), head_v=torch.ones(3))
    _copy_weights(network(w=w), path)
    assert w.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("weights", "first"),
    [
        ({"w": torch.zeros(3)}, "w"),
        ({"w": torch.zeros(2), "x": torch.zeros(1)}, "x"),
        ({"v": torch.zeros(2)}, "v"),
    ],
    ids=["another shape", "one more", "another name"],
)
def test_weights_of_another_base_are_named(
    weights: dict[str, Tensor], first: str, tmp_path: Path
) -> None:
    w = torch.tensor([4.0, 5.0])
    with pytest.raises(CheckpointError, match=rf"does not fit .*\(first difference: {first}\)"):
        _copy_weights(network(w=w), written(tmp_path, **weights))
    assert w.tolist() == [4.0, 5.0]
