"""Whole runs for `test_zero_runs.py`.

As a script: `zero_runs.py JOB.json` under torchrun or alone, with what `Job` holds.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colearn.runs.record import Progress

CASES = ("collm_cc", "collm_dc", "magrpo", "spiral_rae")
WEIGHTS = ("full", "lora")
LOCAL = ("local", "cpu_adam")
SMALL_CLIP = {"learning_rate": 1e-3, "max_grad_norm": 0.5}
_PLAIN = {"baseline": "none"}
"""Beside item means the targets of a new value head have the mean zero, and Adam makes a step of
the bias out of the sum's rounding: with other micro-batches, one process ends 1e-2 away, too."""
_TASKS: dict[str, dict[str, Any]] = {
    "team": {"name": "tiny:Notes", "horizon": 2},
    "game": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
}


@dataclass(frozen=True)
class Job:
    """Runs that one launch makes, one after the other, in folders `out/LEARNER-CASE-WEIGHTS`.

    learners: `local`, `cpu_adam` (the local learner with DeepSpeed's CPU Adam), or names or paths
    of DeepSpeed configs.
    model: folder of the team's model; the game is played by the embedded one.
    """

    out: str
    model: str
    learners: tuple[str, ...]
    cases: tuple[str, ...] = CASES
    weights: tuple[str, ...] = WEIGHTS
    iterations: int = 20
    resume: bool = False
    stop: int | None = None
    """Iteration after which the run is abandoned; its last checkpoint is one iteration older."""

    def write(self, file: Path) -> Path:
        file.write_text(json.dumps(asdict(self)))
        return file


def folder_of(out: Path, learner: str, case: str, weights: str) -> Path:
    return out / f"{Path(learner).stem}-{case}-{weights}"


def settings(job: Job, learner: str, case: str, weights: str) -> dict[str, Any]:
    game = case == "spiral_rae"
    lora = {"rank": 4, "alpha": 16} if weights == "lora" else None
    model = {"path": "embedded-tiny" if game else job.model, **SMALL_CLIP, "lora": lora}
    return {
        "task": _TASKS["game" if game else "team"],
        "algorithm": {"name": case, **({"rollout": {"k": 2}} if case == "magrpo" else {})},
        "models": {"*": model},
        **({"critic": {**model, **_PLAIN}} if case in ("collm_cc", "collm_dc") else {}),
        "agents": {"*": {"sampling": {"max_tokens": 4 if game else 5}}},
        "train": {"episodes": 4, "environment_steps": 10**9, "iterations": job.iterations},
        "evaluation": {"episodes": 1, "every": 10**6},
        "run": {
            "device": "cpu",
            "learner": "local" if learner in LOCAL else {"name": "deepspeed", "config": learner},
            "checkpoint_minutes": None if job.stop is None else 1e-9,
        },
    }


class _Stopped(Exception):
    pass


def main(job: Job) -> None:
    import torch

    from colearn.config import load_config
    from colearn.training.loop import Experiment

    AdamW = torch.optim.AdamW

    def report(progress: Progress, _: dict[str, float]) -> None:
        if progress.iteration == job.stop:
            raise _Stopped

    for learner in job.learners:
        if learner == "cpu_adam":
            from cpu_adam import CPUAdamW

            torch.optim.AdamW = CPUAdamW
        else:
            torch.optim.AdamW = AdamW
        for case in job.cases:
            for weights in job.weights:
                config = load_config(settings(job, learner, case, weights))
                folder = folder_of(Path(job.out), learner, case, weights)
                with suppress(_Stopped):
                    Experiment(config, folder, resume=job.resume).run(report)


if __name__ == "__main__":
    main(Job(**json.loads(Path(sys.argv[1]).read_text())))
