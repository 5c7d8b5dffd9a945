"""Games per second of self-play, with time shares by phase.

    python benchmarks/games_speed.py [CONFIG] [--iterations 5] [--set KEY=VALUE ...] [--out FILE]

Runs the first iterations of a config (`learning/kuhn` where none is named) and prints games per
second and the shares of four things: the game (the task's own functions), generation (the model
speaking), the update, and the rest, which is the grower, seeds and records. Seconds are this
process's own CPU time, so a busy machine does not change the shares. One iteration goes before.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _turns import generation_seconds

from colearn.config import load_config
from colearn.experiment.loop import Experiment

TASK = ("reset", "observe", "step", "metrics", "global_info")


class Clock:
    """Seconds by name; a call within another counts for the outer one alone."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside = False

    def timed(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return call(*arguments, **named)
            self._inside, started = True, time.process_time()
            try:
                return call(*arguments, **named)
            finally:
                self._inside = False
                self.seconds[name] += time.process_time() - started

        return wrapped


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", nargs="?", default="learning/kuhn")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    measurement = measure(given.config, given.iterations, given.sets)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in measurement["shares"].items())
    print(f"{measurement['games_per_second']:.0f} games per second of CPU time; {shares}")
    if given.out:
        given.out.write_text(json.dumps(measurement, indent=1))


def measure(name: str, iterations: int, sets: Sequence[str]) -> dict[str, Any]:
    """Games per second and shares that add up to 1."""
    config = load_config(name, list(sets))
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Experiment(config, Path(folder) / "run") as run:
        if run.assembly.updater is None:
            raise SystemExit(f"{name}: nothing is learned; name another config")
        run.step()
        task = run.assembly.run.task
        for part in TASK:
            setattr(task, part, clock.timed(getattr(task, part), "game"))
        update = clock.timed(run._update, "update")
        run._update = update  # type: ignore[method-assign]
        before, started = run.progress.episodes, time.process_time()
        with generation_seconds() as generated:
            for _ in range(iterations):
                run.step()
        seconds = time.process_time() - started
        clock.seconds["generation"] = sum(generated)
        games = run.progress.episodes - before
    spent = {part: clock.seconds[part] / seconds for part in ("game", "generation", "update")}
    return {
        "config": name,
        "games": games,
        "games_per_second": games / seconds,
        "shares": {**spent, "rest": 1.0 - sum(spent.values())},
    }


if __name__ == "__main__":
    main()
