"""Who is told what, and when: callbacks, the run's files, trackers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from colearn.contract import Callback, Headline, Tracker
from colearn.errors import ConfigError
from colearn.runs.record import Line, Progress
from colearn.training import listeners as module
from colearn.training.callbacks import OwnMetric
from colearn.training.listeners import Listeners
from colearn.training.processes import Processes

EVENTS = ("on_start", "on_rollout", "on_update", "on_evaluate", "on_save")


@dataclass
class Noted(Callback):
    """Notes its events; sets a metric of its own and, at one event, a reason to stop."""

    name: str
    told: list[str]
    metric: str | None = None
    stops_at: str | None = None
    saw: list[list[str]] = field(default_factory=list)
    """The metrics that it was shown, by event."""

    @property
    def adds(self) -> Sequence[str]:
        return () if self.metric is None else (self.metric,)

    def _note(self, event: str, at: Any) -> None:
        self.told.append(f"{event} {self.name}")
        if self.stops_at == event:
            at.stop = f"{self.name} stops"
        if event in ("on_update", "on_evaluate"):
            self.saw.append(sorted(at.metrics))
            if self.metric is not None:
                at.metrics[self.metric] = 1.0

    def on_start(self, event: Any) -> None:
        self._note("on_start", event)

    def on_rollout(self, event: Any) -> None:
        self._note("on_rollout", event)

    def on_update(self, event: Any) -> None:
        self._note("on_update", event)

    def on_evaluate(self, event: Any) -> None:
        self._note("on_evaluate", event)

    def on_save(self, event: Any) -> None:
        self._note("on_save", event)

    def on_end(self) -> None:
        self.told.append(f"on_end {self.name}")


class NotedTracker(Noted, Tracker):
    """The same, as a tracker."""

    def log(self, metrics: Any, step: int) -> None: ...

    def transcripts(self, episodes: Any, step: int) -> None: ...

    def close(self) -> None: ...


class Files:
    """The files of a run; what is written is told, too."""

    def __init__(self, told: list[str], earlier: Sequence[Line] = ()) -> None:
        self.told, self.written, self.lost = told, list[dict[str, float]](), list(earlier)
        self.folder = SimpleNamespace(path=Path("runs/mine"), lines=lambda: list(self.lost))
        self.writing = nullcontext

    def metrics(self, line: Line) -> None:
        self.told.append(f"line of the {line.kind}")
        self.written.append(dict(line.metrics))  # type: ignore[arg-type]

    def episodes(self, episodes: Any) -> None:
        self.told.append("episodes")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def make(told: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(
        *callbacks: Callback,
        trackers: Sequence[Tracker] = (),
        headline: str = "return",
        earlier: Sequence[Line] = (),
        optimum: float | None = None,
    ) -> tuple[Listeners, Files, Progress]:
        monkeypatch.setattr(module, "build_tracker", lambda tracker, *_: tracker)
        monkeypatch.setattr(module, "recorded_settings", lambda config: {})
        config = SimpleNamespace(
            run=SimpleNamespace(trackers=tuple(trackers)),
            train=SimpleNamespace(record=False, staleness=0),
            evaluation=SimpleNamespace(transcripts=0),
        )
        run: Any = SimpleNamespace(
            callbacks=callbacks,
            config=config,
            headline=Headline(headline),
            task=SimpleNamespace(optimum=optimum),
        )
        files, progress = Files(told, earlier), Progress()
        listeners = Listeners(run, files, Processes(torch.device("cpu")), progress)  # type: ignore[arg-type]
        return listeners, files, progress

    return make


def test_callbacks_are_told_in_their_order_then_the_files_then_trackers(
    make: Any, told: list[str]
) -> None:
    listeners, *_ = make(Noted("a", told), Noted("b", told), trackers=[NotedTracker("t", told)])
    listeners.start(resumed=False)
    listeners.rollout([])
    listeners.update([], {}, None)
    listeners.evaluation([], {"return": 0.0})
    listeners.saved(Path("step-1"))
    listeners.end()
    every = {event: [f"{event} {name}" for name in "abt"] for event in EVENTS}
    every["on_update"].insert(2, "line of the update")
    every["on_evaluate"][2:2] = ["episodes", "line of the evaluation"]
    assert told == [one for event in EVENTS for one in every[event]] + [
        "on_end t",
        "on_end b",
        "on_end a",
    ]


def test_callbacks_that_add_metrics_come_first_and_the_others_see_what_they_added(
    make: Any, told: list[str]
) -> None:
    watches, also = Noted("watches", told), Noted("also", told)
    adds = [Noted("adds", told, metric="mine"), Noted("adds more", told, metric="more")]
    tracker = NotedTracker("tracker", told)
    listeners, files, _ = make(watches, adds[0], also, adds[1], trackers=[tracker])
    listeners.start(resumed=False)
    told.clear()
    listeners.evaluation([], {"return": 0.0})
    names = [one.removeprefix("on_evaluate ") for one in told if one.startswith("on_")]
    assert names == ["adds", "adds more", "watches", "also", "tracker"]
    everything = ["mine", "more", "return"]
    assert watches.saw == also.saw == tracker.saw == [everything]
    assert [sorted(line) for line in files.written] == [everything]
    assert adds[0].saw == [["return"]] and adds[1].saw == [["mine", "return"]]


def test_a_callback_may_add_the_headline_and_without_it_nothing_is_written(
    make: Any, told: list[str]
) -> None:
    listeners, files, _ = make(Noted("adds", told, metric="mine"), headline="mine")
    listeners.start(resumed=False)
    listeners.evaluation([], {"return": 0.0})
    assert files.written == [{"return": 0.0, "mine": 1.0}]
    listeners, files, _ = make(Noted("adds", told), headline="mine")
    listeners.start(resumed=False)
    told.clear()
    with pytest.raises(ConfigError, match=r"evaluation\.headline: no metric 'mine'"):
        listeners.evaluation([], {"return": 0.0})
    assert told == ["on_evaluate adds"] and not files.written


@pytest.mark.parametrize("event", EVENTS)
def test_the_first_reason_to_stop_is_the_run_s(make: Any, told: list[str], event: str) -> None:
    """A later one, also of a later event, does not replace it; all are still told."""
    first, second = Noted("first", told, stops_at=event), Noted("second", told, stops_at="on_save")
    listeners, *_ = make(first, second)
    listeners.start(resumed=False)
    listeners.rollout([])
    listeners.update([], {}, None)
    listeners.evaluation([], {"return": 0.0})
    assert listeners.stop == (None if event == "on_save" else "first stops")
    listeners.saved(Path("step-1"))
    assert listeners.stop == ("second stops" if event == "on_save" else "first stops")
    assert told[-2:] == ["on_save first", "on_save second"]


def test_who_did_not_start_is_told_of_no_end(make: Any, told: list[str]) -> None:
    class Fails(Noted):
        def on_start(self, event: Any) -> None:
            raise ConfigError("no room")

    listeners, *_ = make(Noted("a", told), Fails("b", told), Noted("c", told))
    with pytest.raises(ConfigError, match="no room"):
        listeners.start(resumed=False)
    listeners.end()
    listeners.end()
    assert told == ["on_start a", "on_end a"]


EQUAL = {"return": 1.0, "best_return": 1.0, "advantage/zero": 1.0}
"""An update in which no answer earns more than another."""


def collapses(listeners: Listeners, progress: Progress, count: int) -> list[float]:
    told = []
    for _ in range(count):
        progress.iteration += 1
        metrics = dict(EQUAL)
        listeners.update([], metrics, None)
        told.append(metrics["collapse"])
    return told


def test_a_collapse_is_counted_from_the_update_where_it_began_and_printed_once(
    make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with the fifth update that shows it."""
    listeners, files, progress = make()
    listeners.start(resumed=False)
    assert collapses(listeners, progress, 7) == [0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0]
    assert [line["collapse"] for line in files.written] == [0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "mine: nothing is learned since update 1" in lines[0]


def test_a_resumed_run_counts_the_updates_before_it(make: Any) -> None:
    earlier = [
        Line(
            kind=kind, iteration=n, environment_steps=n, generated_tokens=0, updates=n,
            wall_seconds=0.0, metrics=EQUAL,
        )
        for n in range(1, 4)
        for kind in ("update", "evaluation")
    ]  # fmt: skip
    for resumed, expected in ((True, [0.0, 5.0]), (False, [0.0, 0.0])):
        listeners, _, progress = make(earlier=earlier)
        progress.iteration = 3
        listeners.start(resumed=resumed)
        assert collapses(listeners, progress, 2) == expected


def test_a_run_that_earns_the_task_s_optimum_has_not_collapsed(
    make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    listeners, _, progress = make(optimum=1.0)
    listeners.start(resumed=False)
    assert collapses(listeners, progress, 6) == [0.0] * 6
    assert "if the task is solved, stop here" in capsys.readouterr().err


@pytest.mark.parametrize("event", [*EVENTS, "on_end"])
@pytest.mark.parametrize(("base", "field"), [(Noted, "callbacks"), (NotedTracker, "run.trackers")])
def test_a_callback_that_raises_is_one_line_that_names_it_and_its_line(
    make: Any, told: list[str], event: str, base: type[Noted], field: str
) -> None:
    def raises(self: object, *event: object) -> None:
        raise LookupError("no such key")

    mine = type("Mine", (base,), {event: raises, "__module__": __name__})("a", told)
    given = {"trackers": [mine]} if issubclass(base, Tracker) else {}
    listeners, *_ = make(*(() if given else (mine,)), **given)
    with pytest.raises(ConfigError) as caught:
        listeners.start(resumed=False)
        listeners.rollout([])
        listeners.update([], {}, None)
        listeners.evaluation([], {"return": 0.0})
        listeners.saved(Path("checkpoints/0"))
        listeners.end()
    line = str(caught.value)
    assert line.startswith(f"{field}: Mine raised LookupError: no such key ({__file__}, line ")
    assert line.endswith("fix it there") and "\n" not in line


def on(event: str, change: Any) -> Callback:
    """A callback that changes an event."""
    return type("Mine", (Callback,), {event: lambda self, at: change(at)})()


def test_numbers_of_every_kind_are_metrics(make: Any) -> None:
    values = {"one": np.float32(0.5), "two": torch.tensor(2.0), "three": np.int64(3), "none": None}
    listeners, files, _ = make(on("on_evaluate", lambda event: event.metrics.update(values)))
    listeners.start(resumed=False)
    listeners.evaluation([], {"return": 0.0})
    assert [files.written[0][name] for name in values] == [0.5, 2.0, 3.0, None]


@pytest.mark.parametrize(
    ("event", "change", "line"),
    [
        ("on_update", lambda at: at.metrics.update(x="a"), "set the metric 'x' to 'a'"),
        ("on_evaluate", lambda at: at.metrics.update(x=torch.ones(2)), "set the metric 'x' to"),
        ("on_evaluate", lambda at: at.metrics.update({"return": "x"}), "set the metric 'return'"),
        ("on_evaluate", lambda at: at.metrics.update({3: 1.0}), "set the metric 3 to 1.0; set a"),
        ("on_update", lambda at: setattr(at, "stop", False), "set stop to False; to end the run"),
        ("on_rollout", lambda at: setattr(at, "stop", True), "set stop to True; to end the run"),
        ("on_save", lambda at: setattr(at, "stop", 1), "set stop to 1; to end the run, set a"),
    ],
)
def test_what_a_callback_may_not_set_is_one_line(
    make: Any, event: str, change: Any, line: str
) -> None:
    listeners, *_ = make(on(event, change))
    listeners.start(resumed=False)
    with pytest.raises(ConfigError) as caught:
        listeners.rollout([])
        listeners.update([], {}, None)
        listeners.evaluation([], {"return": 0.0})
        listeners.saved(Path("step-1"))
    assert str(caught.value).startswith(f"callbacks: Mine {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "function", [lambda tree: [1.0], lambda tree: "a", lambda tree: np.ones(2)]
)
def test_a_metric_that_is_no_number_is_one_line(function: Any) -> None:
    tree, own = SimpleNamespace(), OwnMetric(function=function, label="mine")
    event: Any = SimpleNamespace(metrics={}, trees=[tree])
    with pytest.raises(ConfigError, match=r"^run\.callbacks: own_metric: 'mine' returned .*; ret"):
        own.on_evaluate(event)
