"""What a critic explains by turn beside means by item, and the processor time of its update.

    python benchmarks/critic_default.py --out default --seeds 3      # resumable, one core
    python benchmarks/critic_default.py --out default --report

CoLLM-CC on five tasks, with each of the settings in `VARIANTS`. The figures are those of the second
half of the updates, as in a report; processor time is that of the process, so that other work on
the machine counts little.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from colearn.comparison.plan import config_of
from colearn.config import load_config
from colearn.experiment.loop import Experiment
from colearn.experiment.update.critics import Critics
from colearn.experiment.update.updater import Updater
from colearn.record import open_run, read_run
from colearn.report.critic_worth import critic_summary

CONFIGS = Path(__file__).parents[1] / "configs"
READ_ONCE = {
    "algorithm.value_loss.rescale": True,
    "algorithm.value_loss.frozen_targets": True,
    "algorithm.advantage.normalize": True,
}
FEW_ITEMS = {
    **READ_ONCE,
    "train.environment_steps": 7680,
    "train.episodes": 64,
    "task.train": 32,
}
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "quickstart": ("quickstart.yaml", {}),
    "house_build": (
        "tiny/house_build.yaml",
        {
            **READ_ONCE,
            "train.environment_steps": 3840,
            "train.episodes": 64,
            "train.minibatch": 64,
        },
    ),
    "sokoban": (
        "tiny/stronger_mas_sokoban.yaml",
        {**FEW_ITEMS, "algorithm.loss": {"ratio": "token", "clip": 0.2}},
    ),
    "sudoku, 3 blanks": (
        "tiny/stronger_mas_sudoku.yaml",
        {**FEW_ITEMS, "task.blanks": 3},
    ),
    "sudoku, 4 blanks": (
        "tiny/stronger_mas_sudoku.yaml",
        {**FEW_ITEMS, "task.blanks": 4},
    ),
}
"""Tasks whose items recur, for long enough that their means explain something."""
VARIANTS: dict[str, dict[str, Any]] = {
    "none": {"critic.baseline": "none"},
    "item": {"critic.baseline": "item"},
    "ridge": {"critic.baseline": "none", "critic.head": "ridge", "critic.replay": 4},
    "item, ridge": {"critic.baseline": "item", "critic.head": "ridge", "critic.replay": 4},
}


class Clock:
    """Processor seconds within some calls."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            started = time.process_time()
            try:
                return call(*given, **named)
            finally:
                self.seconds.append(time.process_time() - started)

        return timed


def run(out: Path, task: str, variant: str, seed: int) -> dict[str, Any]:
    file, changes = TASKS[task]
    config = config_of(load_config(CONFIGS / file), "collm_cc")
    own: Mapping[str, Any] = {"run.seed": seed, "run.device": "cpu", "evaluation.every": 10**6}
    chosen = VARIANTS[variant]
    if chosen.get("critic.head") == "ridge":  # its targets are read once
        chosen = {**chosen, "algorithm.value_loss.frozen_targets": True}
    config = load_config(config.model_dump(), {**changes, **chosen, **own})
    update, critic = Clock(), Clock()
    before = Updater.update, Critics.fit, Critics.read
    Updater.update = update.around(Updater.update)  # type: ignore[method-assign]
    Critics.fit = critic.around(Critics.fit)  # type: ignore[method-assign]
    Critics.read = critic.around(Critics.read)  # type: ignore[method-assign]
    folder = out / "runs" / f"{task}-{variant}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    try:
        Experiment(config, folder).run()
    finally:
        Updater.update, Critics.fit, Critics.read = before  # type: ignore[method-assign]
    summary = critic_summary(task, [read_run(open_run(folder))])
    assert summary is not None
    final = [line.metrics["return"] for line in open_run(folder).evaluations()][-1]
    return {
        "task": task,
        "variant": variant,
        "seed": seed,
        "explained": [one.explained and one.explained.mean for one in summary.turns],
        "r2": [one.r2 and one.r2.mean for one in summary.turns],
        "item_mean": [one.item_mean and one.item_mean.mean for one in summary.turns],
        "ceiling": [one.ceiling for one in summary.turns],
        "update_seconds": statistics.median(update.seconds),
        "critic_seconds": sum(critic.seconds) / len(update.seconds),
        "return": final,
    }


def report(path: Path) -> str:
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        "| task | critic | seeds | explained, by turn | R^2 | means by item "
        "| processor seconds of an update | of the critic | return at the end |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task, variant in dict.fromkeys((one["task"], one["variant"]) for one in runs):
        some = [one for one in runs if (one["task"], one["variant"]) == (task, variant)]
        cells = [task, variant, str(len(some))]
        cells += [_by_turn([one[key] for one in some]) for key in ("explained", "r2", "item_mean")]
        for key in ("update_seconds", "critic_seconds", "return"):
            cells.append(f"{statistics.fmean(one[key] for one in some):.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_turn(seeds: list[list[float | None]]) -> str:
    """Means over seeds, by turn."""
    return " / ".join(
        f"{statistics.fmean(measured):.2f}"
        if (measured := [one for one in turn if one is not None])
        else "-"
        for turn in zip(*seeds, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--variants", nargs="+", default=["none", "item"])
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(one["task"], one["variant"], one["seed"]) for one in records}
    jobs = product(range(options.seeds), options.tasks, options.variants)
    for seed, task, variant in () if options.report else jobs:
        if (task, variant, seed) not in done:
            made = run(options.out, task, variant, seed)
            with path.open("a") as file:
                file.write(json.dumps(made) + "\n")
            print(json.dumps(made), flush=True)
    print(report(path))


if __name__ == "__main__":
    main()
