"""Running `learner_cases.py` in processes of its own, and reading their results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent


def launch(
    processes: int, out: Path, learners: str, *cases: str, checkpoint: Path | None = None
) -> None:
    """Under torchrun, or alone for one process."""
    script = [str(HERE / "learner_cases.py"), str(out), learners, *cases]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    environment = os.environ | {
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "helpers"), str(HERE.parents[1])]),
        "LEARNER_FOLDER": str(checkpoint or out),
    }
    # DeepSpeed compiles its exchange through shared memory once for each machine: minutes.
    done = subprocess.run(
        [sys.executable, *(torchrun if processes > 1 else []), *script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def result_of(out: Path, learner: str, case: str, rank: int = 0) -> dict[str, Any]:
    return torch.load(out / f"{learner}-{case}-{rank}.pt", weights_only=False)


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference between the weights of two results."""
    assert one["weights"].keys() == other["weights"].keys()
    return max(
        (weight - other["weights"][name]).abs().max().item()
        for name, weight in one["weights"].items()
    )


def same_log(one: dict[str, Any], other: dict[str, Any], tolerance: float) -> bool:
    """The same metrics, gradient norms and learning rates at every update, relatively; without the
    signal of the gradient, which the local learner alone reads from its moments."""

    def common(result: dict[str, Any]) -> list[dict[str, float]]:
        return [{k: v for k, v in step.items() if k != "grad_signal"} for step in result["log"]]

    ones, others = common(one), common(other)
    return len(ones) == len(others) and all(
        left.keys() == right.keys()
        and all(abs(left[k] - right[k]) <= tolerance * max(1.0, abs(right[k])) for k in right)
        for left, right in zip(ones, others, strict=True)
    )
