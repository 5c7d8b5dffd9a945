"""Weights that are held while a learner moves on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from colearn.training.learners.copies import HeldWeights


@pytest.fixture
def learner() -> Any:
    """After three steps its only weight is (1, 2)."""
    weight = torch.tensor([1.0, 2.0])
    return SimpleNamespace(steps=3, weights=lambda: {"w": weight})


def moved(learner: Any) -> None:
    learner.weights()["w"].add_(10.0)
    learner.steps += 1


def test_a_copy_puts_back_the_weights_and_steps_of_its_time(learner: Any) -> None:
    held = HeldWeights(learner)
    moved(learner)
    held.put()
    assert (learner.weights()["w"].tolist(), learner.steps) == ([1.0, 2.0], 3)


def test_a_saved_copy_is_read_into_another_with_its_steps(learner: Any, tmp_path: Path) -> None:
    HeldWeights(learner).save(tmp_path)
    moved(learner)
    other = HeldWeights(learner)
    other.load(tmp_path, 3)
    other.put()
    assert (learner.weights()["w"].tolist(), learner.steps) == ([1.0, 2.0], 3)
