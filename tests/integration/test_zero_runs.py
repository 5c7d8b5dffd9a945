"""Whole runs under ZeRO by two processes: the weights of the local learner in one process."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import save_model
from zero_runs import CASES, WEIGHTS, Job, folder_of

from colearn.runs.record import open_run

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None, reason="needs the deepspeed extra"
    ),
]
HERE = Path(__file__).parent
STAGES = {"zero0": "local", "zero2": "local", "zero3": "local", "zero3_offload": "cpu_adam"}
"""And the learner of the run in one process. DeepSpeed's CPU Adam steps offloaded state; it rounds
otherwise than torch's (`test_cpu_adam.py`), and twenty updates amplify that to 2e-5."""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


def start(job: Job, file: Path, *, processes: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "helpers"), str(HERE.parents[1])]),
        "COLEARN_CACHE": str(file.parent / "cache"),
    }
    launcher = TORCHRUN if processes > 1 else ()
    command = [sys.executable, *launcher, str(HERE / "zero_runs.py"), str(job.write(file))]
    with file.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )


def launch(job: Job, file: Path, *, processes: int) -> None:
    code = start(job, file, processes=processes).wait(1800)
    assert code == 0, file.with_suffix(".log").read_text()[-6000:]


def last_weights(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = open_run(run).checkpoints.choose("last").path
    files = sorted(checkpoint.glob("*/weights.safetensors"))
    assert files
    return {
        f"{file.parent.name}/{name}": tensor
        for file in files
        for name, tensor in load_file(file).items()
    }


def apart(run: Path, other: Path) -> float:
    """The largest difference between the weights of two runs."""
    weights, others = last_weights(run), last_weights(other)
    assert weights.keys() == others.keys()
    return max((weights[name] - others[name]).abs().max().item() for name in weights)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all runs, twenty updates each."""
    out = tmp_path_factory.mktemp("runs")
    model = save_model(out / "model")
    launch(Job(str(out), model, ("local", "cpu_adam")), out / "local.json", processes=1)
    launch(Job(str(out), model, tuple(STAGES)), out / "zero.json", processes=2)
    return out


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stage", STAGES)
def test_two_processes_end_with_the_weights_of_one(
    runs: Path, stage: str, case: str, weights: str
) -> None:
    one = folder_of(runs, STAGES[stage], case, weights)
    assert apart(folder_of(runs, stage, case, weights), one) < 1e-5


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_compared_has_moved_in_every_actor(runs: Path, case: str, weights: str) -> None:
    """At 1e-3 an update of Adam moves a weight by up to 1e-3."""
    model = runs / "short.json"
    first = runs / "first"
    launch(
        Job(str(first), str(runs / "model"), ("local",), (case,), (weights,), iterations=1),
        model,
        processes=1,
    )
    one = last_weights(folder_of(first, "local", case, weights))
    last = last_weights(folder_of(runs, "local", case, weights))
    actors = {name.split("/")[0] for name in last}
    assert len(actors) >= 2
    for actor in actors:
        moved = max((last[n] - one[n]).abs().max() for n in last if n.startswith(f"{actor}/"))
        assert moved > 3e-3, actor


@pytest.mark.parametrize("processes", (1, 2))
@pytest.mark.parametrize("case", ("collm_cc", "magrpo"))
def test_a_run_goes_on_in_another_number_of_processes(
    runs: Path, tmp_path: Path, case: str, processes: int
) -> None:
    job = Job(str(tmp_path), str(runs / "model"), ("zero2",), (case,), ("full",), stop=10)
    launch(job, tmp_path / "first.json", processes=3 - processes)
    whole = Job(**{**vars(job), "resume": True, "stop": None})
    launch(whole, tmp_path / "second.json", processes=processes)
    resumed = folder_of(tmp_path, "zero2", case, "full")
    assert apart(resumed, folder_of(runs, "local", case, "full")) < 1e-5


def test_a_killed_rank_ends_the_job_within_a_minute(runs: Path, tmp_path: Path) -> None:
    job = Job(
        str(tmp_path), str(runs / "model"), ("zero2",), ("magrpo",), ("full",), iterations=10**6
    )
    started = start(job, tmp_path / "killed.json", processes=2)
    try:
        lines = folder_of(tmp_path, "zero2", "magrpo", "full") / "metrics.jsonl"
        until = time.monotonic() + 600
        while not (lines.exists() and lines.read_text().count('"update"') > 2):
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.2)
        ranks = children(started.pid)
        assert len(ranks) == 2
        os.kill(ranks[1], signal.SIGKILL)
        killed = time.monotonic()
        assert started.wait(600) != 0
        assert time.monotonic() - killed < 60
        assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in tasks]
