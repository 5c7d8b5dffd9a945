"""Texts that a run's code and models choose, in every tracker: what each hands to its package, or
writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from colearn.config import Named
from colearn.contract import Callback, EvaluateEvent, Headline, StartEvent, Tracker
from colearn.runs.record import Line, Progress
from colearn.training import listeners as module
from colearn.training.listeners import Listeners
from colearn.training.processes import Processes
from colearn.training.trackers import NAMES

HOSTILE = "half \ud800, \x1b[2J, \x00 and =1+1"
SHOWN = "half \ufffd, \ufffd[2J, \ufffd and =1+1"
EPISODE = {
    "iteration": 1,
    "episode": 0,
    "item": HOSTILE,
    "return": 0.5,
    "metrics": {HOSTILE: 1.0},
    "turns": [{"reward": 0.5, "observations": {HOSTILE: HOSTILE}, "actions": {HOSTILE: HOSTILE}}],
}
EARLIER = Line.model_validate(
    {
        "kind": "update",
        "iteration": 0,
        "environment_steps": 8,
        "generated_tokens": 0,
        "updates": 0,
        "wall_seconds": 0.0,
        "metrics": {HOSTILE: 0.25},
    }
)


class Package(ModuleType):
    """Stands in for wandb and tensorboard: keeps everything that it is given."""

    offline, step = False, 0

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.given: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.given += [arguments, named]
            return named if name == "Table" else self

        return call


class Own(Tracker):
    """A user's tracker."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.given: list[Any] = [str(folder), config]

    def on_start(self, event: StartEvent) -> None:
        self.given.append([line.metrics for line in event.earlier])

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.given.append(metrics)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        self.given.append(episodes)

    def close(self) -> None: ...


class Names(Callback):
    """Adds a metric under a hostile name."""

    @property
    def adds(self) -> Sequence[str]:
        return (HOSTILE,)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        event.metrics[HOSTILE] = 1.0


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts(list(value.items()))
    elif isinstance(value, Sequence):
        for part in value:
            yield from texts(part)


@pytest.mark.parametrize("tracker", [*NAMES, "own"])
def test_every_tracker_gets_texts_that_files_and_terminals_take(
    tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package(tracker)
    for name in ("wandb", "tensorboard", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, package)
    own: list[Own] = []
    if tracker == "own":
        monkeypatch.setattr(
            module, "build_tracker", lambda _, *given: own.append(Own(*given)) or own[0]
        )
    monkeypatch.setattr(
        module,
        "recorded_settings",
        lambda config: {"task": {"name": HOSTILE}, "algorithm": {"name": "x", HOSTILE: [HOSTILE]}},
    )
    monkeypatch.setattr(module, "transcript", lambda task, tree: dict(EPISODE))
    run: Any = SimpleNamespace(
        callbacks=[Names()],
        config=SimpleNamespace(
            run=SimpleNamespace(trackers=(Named(name=tracker),)),
            train=SimpleNamespace(record=False, staleness=0),
            evaluation=SimpleNamespace(transcripts=1),
        ),
        headline=Headline("return"),
        task=SimpleNamespace(optimum=None),
    )
    writer: Any = SimpleNamespace(
        folder=SimpleNamespace(path=tmp_path, lines=lambda: [EARLIER]),
        writing=nullcontext,
        metrics=lambda line: None,
        episodes=lambda episodes: None,
    )
    listeners = Listeners(run, writer, Processes(torch.device("cpu")), Progress())
    listeners.start(resumed=True)
    listeners.evaluation([None], {"return": 0.5})  # type: ignore[list-item]
    listeners.end()
    given = [*package.given, *(part for one in own for part in one.given)]
    told = list(texts(given))
    assert any(SHOWN in text for text in told)
    for text in told:
        text.encode()
        assert not {"\x1b", "\x00"} & set(text)
