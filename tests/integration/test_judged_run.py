"""A run that is rewarded by a judge: it is paid what the judge says, and its costs are recorded."""

from __future__ import annotations

import json

import pytest

from colearn.config import load_config
from colearn.runs.record import RunFolder
from colearn.training.loop import Experiment
from tests.helpers.scripted_endpoint import ScriptedEndpoint


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "train.jsonl"
    data.write_text("\n".join(json.dumps({"prompt": f"paint {k}"}) for k in range(10)))
    with ScriptedEndpoint(speak=lambda messages, seed: "7").serving() as server:

        def write(steps):
            return load_config(
                {
                    "task": {
                        "name": "dataset",
                        "path": str(data),
                        "reward": {"name": "judge", "url": server.url},
                        "words": ["red", "blue", "gold", "green"],
                    },
                    "algorithm": {"name": "grpo", "rollout": {"k": 4}},
                    "models": {"*": {"path": "embedded-tiny-untrained", "learning_rate": 1e-2}},
                    "agents": {"*": {"sampling": {"max_tokens": 3}}},
                    "train": {"environment_steps": steps, "episodes": 2},
                    "evaluation": {"every": 100},
                }
            )

        yield write, server


def test_a_run_is_paid_what_the_judge_says_and_a_resumed_one_adds_to_its_costs(config, tmp_path):
    write, server = config
    first = Experiment(write(8), tmp_path / "run").run()
    assert first.last["return"] == pytest.approx(0.7)
    assert first.costs["judge calls"] == len(server.requests)
    evaluated = 1 + 1  # one held-out row, before and after
    assert first.costs["judge calls"] + first.costs["judge cached"] == 8 + evaluated
    Experiment(write(16), tmp_path / "run", resume=True).run()
    second = RunFolder(tmp_path / "run").record().costs
    judged = second["judge calls"] + second["judge cached"]
    assert judged == 16 + 1 + 2  # the last state is evaluated again at the end


def test_a_judge_without_a_readable_score_is_seen_in_the_metrics_of_an_evaluation(config, tmp_path):
    write, server = config
    server.speak = lambda messages, seed: "It is wrong in 2 places"
    judged = write(8)
    judged.task.settings["reward"] |= {"failure_reward": 0.25, "retries": 1}
    record = Experiment(judged, tmp_path / "run").run()
    assert record.last["reward_judge_unreadable"] == 2.0  # both attempts at the held-out row
    assert record.last["reward_judge_failed"] == 1.0 and record.last["reward"] == 0.25
    assert record.costs["judge unreadable"] == 2 * record.costs["judge failures"]
