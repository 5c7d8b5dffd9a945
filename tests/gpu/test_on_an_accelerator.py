"""The same figures on an accelerator: `pytest -m gpu`."""

from __future__ import annotations

import json

import pytest
import torch
from tiny import ARCHITECTURES, Notes, behaviour, cast, forced, gap, play

from colearn.config import load_config
from colearn.rollout.shapes import KaryTree
from colearn.training.loop import Experiment

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here"),
]


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_generator_and_teacher_forcing_give_the_same_logprobs(kind):
    torch.backends.cuda.matmul.allow_tf32 = False
    team = cast(kind=kind)
    for base in team.bases.values():
        base.to("cuda")
    for tree in play(Notes(ends=True, items=3), team, KaryTree(3)):
        for agent in tree.agents:
            assert gap(behaviour(tree, agent), forced(team, tree, agent)) < 1e-4


@pytest.mark.parametrize(
    ("dtype", "tf32", "largest"),
    [("float32", False, 1e-4), ("float32", True, 2e-3), ("bfloat16", True, 5e-2)],
    ids=["float32", "rounded to TF32", "bfloat16"],
)
def test_the_quickstart_trains(tmp_path, dtype, tf32, largest):
    settings = {
        "train.environment_steps": 64,
        "models.*.dtype": dtype,
        "critic.dtype": dtype,
        "run.device": "cuda",
        "run.tf32": tf32,
    }
    run = Experiment(load_config("quickstart", settings), tmp_path / "run").run()
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    gaps = [
        value
        for line in lines
        for key, value in line["metrics"].items()
        if key.endswith("logprob_mismatch")
    ]
    assert run.status == "finished" and run.updates > 0
    assert max(gaps) < largest
