"""The study's curves by role: what each agent was credited in training, in standard deviations."""

import json

import fabricated_runs as fabricated
import pytest

from colearn.runs.report.source import read_source
from colearn.training.study.page import rewards_by_agent


def test_a_team_that_is_paid_together_still_has_a_curve_for_each_role(tmp_path):
    """`left` is credited 1, 1, 4 and `right` 3, 1, 3: in the second update both are credited 1, and
    the logger writes the team's name alone."""
    run = tmp_path / "runs" / "at_grpo-s0"
    fabricated.write_run(run, "at_grpo", 0)
    path = run / "metrics.jsonl"
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    logged = [
        {"return": 9.0, "objective": 2.0, "objective/left": 1.0, "objective/right": 3.0},
        {"return": 9.0, "objective": 1.0},
        {"return": 9.0, "objective": 3.5, "objective/left": 4.0, "objective/right": 3.0},
    ]
    updates = [
        {**lines[1], "iteration": n, "environment_steps": n, "metrics": metrics}
        for n, metrics in enumerate(logged, 1)
    ]
    fabricated.write_jsonl(path, [lines[0], *updates, *lines[2:]])

    drawn = rewards_by_agent(read_source(tmp_path).runs, ["left", "right"])

    # before smoothing; left: 1, 1, 4 with mean 2 and deviation sqrt 2; right: 3, 1, 3 with mean 7/3
    (_, left), (_, right) = drawn["left"].seeds["0"], drawn["right"].seeds["0"]
    assert left[0] == pytest.approx(-(0.5**0.5))
    assert right[0] == pytest.approx(0.5**0.5)


def test_a_run_without_an_objective_has_no_curves(tmp_path):
    fabricated.write_run(tmp_path / "runs" / "at_grpo-s0", "at_grpo", 0)
    assert rewards_by_agent(read_source(tmp_path).runs, ["left", "right"]) == {}
