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
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from colearn.config import load_config
from colearn.experiment.loop import Experiment

TASK = ("reset", "observe", "step", "metrics", "global_info")


class Clock:
    """Seconds by name; a call within another counts for the outer one alone."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
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
    with tempfile.TemporaryDirectory() as folder:
        run = Experiment(config, Path(folder) / "run")
        updater = run.assembly.updater
        if updater is None:
            raise SystemExit(f"{name}: nothing is learned; name another config")
        run._iteration(updater, None, ())
        clock, task = Clock(), run.assembly.run.task
        for part in TASK:
            setattr(task, part, clock.timed(getattr(task, part), "game"))
        for generator in run.assembly.host.engines:
            generator.generate = clock.timed(generator.generate, "generation")  # type: ignore[method-assign]
        update = clock.timed(run._update, "update")
        run._update = update  # type: ignore[method-assign]
        before, started = run.progress.episodes, time.process_time()
        for _ in range(iterations):
            run._iteration(updater, None, ())
        seconds = time.process_time() - started
        run.record.close()
    spent = {part: clock.seconds[part] / seconds for part in ("game", "generation", "update")}
    return {
        "config": name,
        "games": run.progress.episodes - before,
        "games_per_second": (run.progress.episodes - before) / seconds,
        "shares": {**spent, "rest": 1.0 - sum(spent.values())},
    }


if __name__ == "__main__":
    main()
