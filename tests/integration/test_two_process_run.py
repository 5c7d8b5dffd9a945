"""A whole run in two processes is the run of one: episodes shared out, one folder written."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

pytestmark = pytest.mark.slow

SETTINGS = [
    "--set=train.environment_steps=32",
    "--set=train.token_budget=600",
    "--set=evaluation.every=1",
    "--set=run.device=cpu",
]

JOINT = [
    "--set=models.*.lora.rank=2",
    "--set=critic.lora.rank=2",
    "--set=train.joint_passes=true",
]


def train(folder, *launcher, more):
    command = [*launcher, "-m", "colearn", "train", "quickstart", "--out", str(folder)]
    command += [*SETTINGS, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, timeout=400, capture_output=True)
    said = done.stdout.decode()
    assert said.count(": started") == said.count("; run in ") == 1  # rank 0 alone
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(line["kind"], line["environment_steps"], line["metrics"]["return"]) for line in lines]


@pytest.mark.parametrize("more", [[], JOINT], ids=["", "adapters in joint passes"])
def test_two_processes_sample_and_learn_what_one_does(more, tmp_path):
    ranks = ["-m", "torch.distributed.run", "--nproc_per_node", "2"]
    one = train(tmp_path / "one", sys.executable, more=more)
    two = train(tmp_path / "two", sys.executable, *ranks, more=more)
    assert [line[:2] for line in two] == [line[:2] for line in one]
    assert [line[2] for line in two] == pytest.approx([line[2] for line in one], abs=1e-6)
    for name in ("actor-builder_1", "actor-builder_2", "critic-team"):
        last = [next((tmp_path / run / "checkpoints").glob("*")) for run in ("one", "two")]
        weights = [load_file(folder / name / "weights.safetensors") for folder in last]
        for key, value in weights[0].items():
            torch.testing.assert_close(value, weights[1][key], atol=1e-5, rtol=0)
