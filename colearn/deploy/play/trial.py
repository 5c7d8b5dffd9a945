"""Tests a gateway program without training. The user starts the program by hand; this module runs
its episodes."""

from __future__ import annotations

import itertools
import json
import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from colearn.config import EvaluationSettings
from colearn.contract import DecPOMDP, Player
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.programs.gateway.task import Gateway
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.runs.record.transcript import transcript
from colearn.training.evaluation.played import evaluation_items

_INTERRUPTED = "interrupted"


class Trial:
    """Opens episodes one after the other, prints their URLs, and records the program's calls.

    Nothing is trained. Errors: ConfigError if the task is not a gateway.
    """

    def __init__(
        self,
        task: DecPOMDP[Any, Any],
        players: Mapping[str, Player],
        evaluation: EvaluationSettings,
        *,
        seed: int,
        timeout: float,
        out: Path | None,
    ) -> None:
        if not isinstance(task, Gateway):
            raise ConfigError(
                "task: colearn gateway serves the task 'gateway'; use colearn play for others"
            )
        task.close()  # its port is the trial's now
        self.task = task.by_hand(_print_variables, timeout)
        self.players, self.evaluation, self.seed, self.out = players, evaluation, seed, out
        self._interrupted = False

    def play(self, episodes: int | None) -> None:
        """Plays `episodes` episodes, or all until the user interrupts."""
        items, _ = evaluation_items(self.task, self.evaluation)
        with closing(self.task), self._interruptible():
            for number in itertools.count() if episodes is None else range(episodes):
                print(f"\n# episode {number}: POST to COLEARN_END_URL ends it", flush=True)
                item = items[number % len(items)]
                (tree,), _ = grow(
                    self.task,
                    [item],
                    self.players,
                    Chain(),
                    seed=self.seed,
                    first_episode=number,
                    greedy=self.evaluation.greedy,
                    order="free",
                )
                if self._interrupted:
                    return
                self._record(tree)

    def _record(self, tree: Tree[Any]) -> None:
        metrics, failure = tree.nodes[-1].metrics, tree.nodes[-1].state.failure
        counts = ", ".join(f"{metrics[name]:.0f} {name}" for name in ("requests", "continued"))
        reward = "none" if metrics["reward"] is None else f"{metrics['reward']:g}"
        print(f"# reward {reward}, {counts}" + (f", failed: {failure}" if failure else ""))
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(transcript(self.task, tree), ensure_ascii=False) + "\n")

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let an interrupt end the open episode at once, not at its next request."""

        def interrupt(*_: object) -> None:
            self._interrupted = True
            self.task.server.interrupt(_INTERRUPTED)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _print_variables(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}", flush=True)
