"""What each piece of code for speed or memory on a CPU is worth: runs with it and without it.

    python benchmarks/special_code.py                 # the table, in processor seconds and peaks
    python benchmarks/special_code.py --pieces tree_attention --algorithms magrpo

Model, task and batches are those of `vs_comlrl.py`. Every run is a process of its own on one
thread; its first iteration is not counted. Runs with all pieces alternate with runs that lack one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vs_comlrl import colearn_settings, make_folders, peak_memory

EPISODES = {"magrpo": 2, "collm_cc": 8}
COUNTED = 2
"""Iterations."""


def without_tree_attention() -> None:
    from colearn.models import base

    base.by_blocks = lambda *given: None  # type: ignore[attr-defined]


def without_packed_products() -> None:
    from colearn.models import base

    base.worthwhile = lambda *given: False  # type: ignore[attr-defined]


def without_lean_layers() -> None:
    from colearn.models import base

    base.LARGE = 2**62  # type: ignore[attr-defined]


PIECES: Mapping[str, Callable[[], None]] = {
    "tree_attention": without_tree_attention,
    "packed_products": without_packed_products,
    "lean_layers": without_lean_layers,
    "one_heap": lambda: None,
}
"""By name, what switches a piece off. The heap is chosen before torch is imported."""


def run(folder: Path, algorithm: str, without: str) -> dict[str, float]:
    """Processor seconds of each iteration, and the peak of the process in bytes."""
    if without != "one_heap":
        from colearn.comparison.heap import one_heap

        one_heap()
    import torch

    from colearn.config import Config
    from colearn.experiment.loop import Experiment

    torch.set_num_threads(1)
    if without:
        PIECES[without]()
    settings = colearn_settings(folder, algorithm, EPISODES[algorithm])
    marks: list[float] = []

    class Enough(Exception):
        pass

    def between(progress: Any, metrics: Mapping[str, float]) -> None:
        if progress.iteration and len(marks) <= COUNTED:
            marks.append(time.process_time())
        if len(marks) > COUNTED:
            raise Enough

    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(Enough):
        Experiment(Config.model_validate(settings), Path(scratch) / "run").run(between)
    return {"seconds": (marks[-1] - marks[0]) / COUNTED, "peak": peak_memory()}


def measured(folder: Path, algorithm: str, without: str) -> dict[str, float]:
    paths = [str(folder / "entry"), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", str(folder), algorithm, without or "-"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=list(PIECES))
    parser.add_argument("--algorithms", nargs="+", choices=EPISODES, default=list(EPISODES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder, algorithm, without = given.child
        print(json.dumps(run(Path(folder), algorithm, without.strip("-"))))
        return
    print("| algorithm | without | CPU s an iteration | with all | ratio | peak, ratio |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder)
        for algorithm in given.algorithms:
            for piece in given.pieces:
                pairs = [
                    (measured(folder, algorithm, ""), measured(folder, algorithm, piece))
                    for _ in range(given.rounds)
                ]
                whole, less = (statistics.median(p[k]["seconds"] for p in pairs) for k in (0, 1))
                peak = statistics.median(p[1]["peak"] / p[0]["peak"] for p in pairs)
                print(
                    f"| {algorithm} | {piece} | {less:.2f} | {whole:.2f} | "
                    f"{statistics.median(p[1]['seconds'] / p[0]['seconds'] for p in pairs):.2f} | "
                    f"{peak:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
