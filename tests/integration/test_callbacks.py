"""What callbacks are told, what they may change, and when they end a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import colearn
from colearn.config import load_config
from colearn.contract import Callback
from colearn.errors import ConfigError
from colearn.runs.record import RunFolder
from colearn.training.callbacks import EarlyStopping, OwnMetric, Samples
from colearn.training.loop import Experiment
from tests.helpers.reward_functions import matches
from tests.integration.test_objects import ROWS, SETTINGS, TEAM, TINY, measured


def train(out: Path, *callbacks: Callback, **changes: Any) -> colearn.Result:
    return colearn.train(
        TEAM, "magrpo", models=TINY, data=ROWS, reward=matches, out=out, callbacks=callbacks,
        **{**SETTINGS, **changes},
    )  # fmt: skip


@dataclass(frozen=True)
class Recorder(Callback):
    """Keeps what it is told."""

    told: list[Any] = field(default_factory=list)

    def on_start(self, event):
        self.told.append(("start", event.iteration, event.resumed, len(event.earlier)))

    def on_rollout(self, event):
        self.told.append(("rollout", event.iteration, len(event.trees)))

    def on_update(self, event):
        self.told.append(("update", event.iteration, event.environment_steps))
        event.metrics["trees"] = float(len(event.trees))

    def on_evaluate(self, event):
        self.told.append(("evaluate", event.iteration, len(event.episodes)))

    def on_save(self, event):
        assert (event.checkpoint / "progress.json").is_file()
        self.told.append(("save", event.iteration, event.checkpoint.name))

    def on_end(self):
        self.told.append(("end",))


def turns(tree: Any) -> float:
    return float(len(tree.nodes) - 1)


SELDOM = {"evaluation": {"every": 10, "transcripts": 2, "episodes": 4}}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], colearn.Result]:
    """What a run's callbacks were told, and the run."""
    recorder, metric = Recorder(), OwnMetric(function=turns, label="length")
    shipped = (EarlyStopping(metric="length", patience=100), Samples(), metric)
    result = train(tmp_path_factory.mktemp("told") / "run", recorder, *shipped, **SELDOM)
    return recorder.told, result


def test_a_callback_is_told_of_each_thing_in_its_order(told: Any) -> None:
    events, result = told
    steps = [line.environment_steps for line in result.run.updates]
    rounds = [(("rollout", n, 2), ("update", n + 1, steps[n])) for n in range(len(steps))]
    last = len(steps)
    assert events == [
        ("start", 0, False, 0),
        ("evaluate", 0, 2),
        ("save", 0, "step-0"),
        *(event for both in rounds for event in both),
        ("evaluate", last, 2),
        ("save", last, f"step-{last}"),
        ("end",),
    ]
    assert [line.metrics["trees"] for line in result.run.updates] == [2.0] * last


def test_a_run_is_that_without_callbacks(told: Any, tmp_path: Path) -> None:
    train(tmp_path / "plain", **SELDOM)
    lines = measured(told[1].folder)
    added = [line["metrics"].pop(name) for line in lines for name in ("trees", "length")
             if name in line["metrics"]]  # fmt: skip
    assert len(added) == len(lines)
    assert lines == measured(tmp_path / "plain")


def test_a_metric_of_ones_own_may_be_the_headline_and_end_a_run_that_then_stays_ended(
    tmp_path: Path,
) -> None:
    """It is listed behind the callback that watches it, and reached before the first update."""
    callbacks = [
        {"name": "early_stopping", "target": 2.0},
        {"name": "own_metric", "function": f"{__name__}:turns", "label": "length"},
    ]
    config = load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step"},
            "algorithm": {"name": "magrpo"},
            "models": {"*": {"path": "embedded-tiny"}},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "train": {"environment_steps": 8},
            "evaluation": {"episodes": 4, "headline": {"metric": "length", "better": "lower"}},
            "run": {"callbacks": callbacks},
        }
    )
    record = Experiment(config, tmp_path / "run").run()
    assert record.last["length"] == 2.0 and record.best.value == 2.0
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["run"]["callbacks"] == (
        callbacks
    )
    for again in (record, Experiment(config, tmp_path / "run", resume=True).run()):
        assert (again.status, again.iterations) == ("finished", 0)
        assert again.stopped == "length reached 2"
    folder = RunFolder(tmp_path / "run")
    assert [line.kind for line in folder.lines()] == ["evaluation"]
    assert [checkpoint.iteration for checkpoint in folder.checkpoints.all()] == [0]


@pytest.mark.parametrize(
    ("callbacks", "line"),
    [
        ([{"name": "early_stoping"}], "run.callbacks.0: unknown callback 'early_stoping'; did you"),
        (["early_stopping"], "run.callbacks.0.patience: missing; give patience, target or both"),
        ([{"name": "samples", "count": 0}], "run.callbacks.0.count: must be at least 1, got 0"),
        ([{"name": "samples", "number": 1}], "run.callbacks.0.number: unknown setting; 'sam"),
    ],
)  # fmt: skip
def test_a_wrong_callback_is_one_line_before_the_run(
    callbacks: list[Any], line: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as told:
        train(tmp_path / "run", run={"callbacks": callbacks})
    assert str(told.value).startswith(line)
    assert not (tmp_path / "run").exists()


def test_what_is_no_callback_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^callbacks: function is no Callback; derive its class"):
        train(tmp_path / "run", turns)  # type: ignore[arg-type]
