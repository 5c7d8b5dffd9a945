"""The dry run's time of an iteration against processor time, one thread on a CPU.

    OMP_NUM_THREADS=1 colearn measure
    OMP_NUM_THREADS=1 python benchmarks/dry_run_time.py [CONFIG [KEY=VALUE ...]]

With one thread, the processor time of a run is its time on a quiet machine. The first iteration is
left out, because it warms up.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

ITERATIONS = 4
QUIET = (
    "evaluation.every=100000",
    "evaluation.episodes=1",
    "evaluation.repeats=1",
    "run.checkpoint_every=100000",
)


class Enough(Exception):
    """Ends a run that has been measured."""


def measured(config: Any) -> float:
    """Median processor seconds of an iteration, with its rollout, update and recording."""
    from colearn.training.loop import Experiment

    ends: list[float] = []

    def between(*_: Any) -> None:
        ends.append(time.process_time())
        if len(ends) == ITERATIONS:
            raise Enough

    with tempfile.TemporaryDirectory() as folder, suppress(Enough):
        Experiment(config, Path(folder) / "run").run(between)
    return median(later - sooner for sooner, later in itertools.pairwise(ends))


def main() -> None:
    import torch

    from colearn.config import load_config
    from colearn.estimate import estimate

    assert torch.get_num_threads() == 1, "set OMP_NUM_THREADS=1"
    name, *pairs = sys.argv[1:] or ["quickstart"]
    config = load_config(name, [*QUIET, *pairs])
    seconds = estimate(config).seconds
    assert seconds is not None, "run colearn measure first"
    predicted, real = seconds.rollout + seconds.update, measured(config)
    line = {"config": name, "set": pairs, "predicted": round(predicted, 3), "real": round(real, 3)}
    print(json.dumps(line | {"ratio": round(predicted / real, 2)}))


if __name__ == "__main__":
    main()
