"""A run that is rewarded by a judge: it learns what the judge likes, and its costs are recorded."""

from __future__ import annotations

import json

import pytest

from colearn.config import load_config
from colearn.runs.record import RunFolder
from colearn.training.loop import Experiment
from tests.helpers.scripted_endpoint import ScriptedEndpoint


def likes_blue(messages, seed):
    return "10" if "Answer:\nblue" in messages[0]["content"] else "1"


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "train.jsonl"
    data.write_text("\n".join(json.dumps({"prompt": f"paint {k}"}) for k in range(10)))
    with ScriptedEndpoint(speak=likes_blue).serving() as server:

        def write(steps, model="embedded-tiny"):
            return load_config(
                {
                    "task": {
                        "name": "dataset",
                        "path": str(data),
                        "reward": {"name": "judge", "url": server.url},
                        "words": ["red", "blue", "gold", "green"],
                    },
                    "algorithm": {"name": "grpo", "rollout": {"k": 8}},
                    "models": {"*": {"path": model, "learning_rate": 1e-2}},
                    "agents": {"*": {"sampling": {"max_tokens": 3}}},
                    "train": {"environment_steps": steps, "episodes": 4},
                    "evaluation": {"every": 100},
                }
            )

        yield write, server


def test_a_run_learns_what_the_judge_likes_and_its_costs_are_in_its_record(config, tmp_path):
    write, server = config
    record = Experiment(write(640), tmp_path / "run").run()
    assert record.first["return"] < 0.5 and record.last["return"] > 0.9
    assert record.costs["judge calls"] == len(server.requests)
    evaluated = 1 + 1  # one held-out row, before and after
    assert record.costs["judge calls"] + record.costs["judge cached"] == 640 + evaluated


def test_a_judge_without_a_readable_score_is_seen_in_the_metrics_of_an_evaluation(config, tmp_path):
    write, server = config
    server.speak = lambda messages, seed: "It is wrong in 2 places"
    judged = write(16, "embedded-tiny-untrained")
    judged.task.settings["reward"] |= {"failure_reward": 0.25, "retries": 1}
    record = Experiment(judged, tmp_path / "run").run()
    assert record.last["reward_judge_unreadable"] == 2.0  # both attempts at the held-out row
    assert record.last["reward_judge_failed"] == 1.0 and record.last["reward"] == 0.25
    assert record.costs["judge unreadable"] == 2 * record.costs["judge failures"]


def test_a_resumed_run_adds_to_its_costs(config, tmp_path):
    write, _ = config
    first = Experiment(write(64), tmp_path / "run").run().costs
    Experiment(write(128), tmp_path / "run", resume=True).run()
    second = RunFolder(tmp_path / "run").record().costs
    assert sum(second.values()) > sum(first.values())
    judged = second["judge calls"] + second["judge cached"]
    assert judged == 128 + 1 + 2  # the last state is evaluated again at the end
