"""Coder and tester learn to solve questions that they were not trained on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colearn.config import load_config
from colearn.runs.comparison.plan import config_of
from colearn.training.loop import Experiment


@pytest.mark.slow
def test_coder_and_tester_solve_more_held_out_questions_of_steps(tmp_path: Path) -> None:
    config = load_config("tiny/stronger_mas_code", ["run.device=cpu"])
    Experiment(config_of(config, "at_grpo"), tmp_path / "run").run()
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    solved = [line["metrics"]["solved"] for line in lines if line["kind"] == "evaluation"]
    assert solved[0] < 0.3
    assert solved[-1] > solved[0] + 0.25
