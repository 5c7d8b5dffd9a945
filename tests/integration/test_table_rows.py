"""Rows of the papers' tables that differ by more than an algorithm: each makes one update."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colearn.config import load_config
from colearn.runs.comparison.plan import config_of
from colearn.training.loop import Experiment

SMALL = {
    "train.episodes": 2,
    "train.epochs": 1,
    "train.minibatch": None,
    "evaluation.episodes": 2,
    "evaluation.repeats": 1,
}
ROWS = [
    ("tiny/search_mhgpo", "mhgpo", 1),
    ("tiny/search_loop", "mappo_independent", 4),
    ("tiny/stronger_mas_math", "marft", 2),
]
"""Config, row, and number of trained models."""


def small(name: str, label: str) -> dict[str, object]:
    """The row with `embedded-tiny-untrained` models, for one update of two episodes."""
    row = config_of(load_config(name), label).model_dump(mode="json")
    tiny = {"path": "embedded-tiny-untrained"}
    models = {model: {**chosen, **tiny} for model, chosen in row["models"].items()}
    critic = row["critic"] and {**row["critic"], **tiny}
    return {**row, "models": models, "critic": critic}


@pytest.mark.parametrize(("name", "label", "models"), ROWS)
def test_a_row_trains_its_models_once(name: str, label: str, models: int, tmp_path: Path) -> None:
    config = load_config(small(name, label), {**SMALL, "train.iterations": 1})
    record = Experiment(config, tmp_path / "run").run()
    assert record.status == "finished" and record.updates == 1
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    (update,) = [line["metrics"] for line in lines if line["kind"] == "update"]
    moved = [key for key in update if key.endswith("/grad_norm") and not key.startswith("critic/")]
    assert len(moved) == models
    assert ("answerer/similarity" in update) == (label == "mhgpo")
