"""What callbacks are told, what they may change, and when they end a run."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import colearn
from colearn.config import load_config
from colearn.contract import Callback
from colearn.errors import ConfigError
from colearn.training.callbacks import EarlyStopping, OwnMetric, Samples
from colearn.training.interruption import Interrupted
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


def test_a_callback_is_told_of_each_thing_in_its_order(tmp_path: Path) -> None:
    recorder = Recorder()
    changes = {"evaluation": {"every": 10, "transcripts": 2, "episodes": 4}}
    result = train(tmp_path / "run", recorder, **changes)
    steps = [line.environment_steps for line in result.run.updates]
    rounds = [(("rollout", n, 2), ("update", n + 1, steps[n])) for n in range(len(steps))]
    last = len(steps)
    assert recorder.told == [
        ("start", 0, False, 0),
        ("evaluate", 0, 2),
        ("save", 0, "step-0"),
        *(told for both in rounds for told in both),
        ("evaluate", last, 2),
        ("save", last, f"step-{last}"),
        ("end",),
    ]
    assert [line.metrics["trees"] for line in result.run.updates] == [2.0] * last


def test_a_run_is_that_without_callbacks(tmp_path: Path) -> None:
    train(tmp_path / "plain")
    train(tmp_path / "told", EarlyStopping(patience=100), Samples())
    assert measured(tmp_path / "told") == measured(tmp_path / "plain")


def reds(tree: Any) -> float:
    """Agents that end with `red`."""
    return float(sum(one.text == "red" for one in tree.nodes[-1].actions.values()))


def test_a_metric_of_ones_own_for_a_shipped_task_may_be_the_headline(tmp_path: Path) -> None:
    config = load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step"},
            "algorithm": {"name": "magrpo"},
            "models": {"*": {"path": "embedded-tiny"}},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "train": {"environment_steps": 8},
            "evaluation": {"episodes": 4, "headline": {"metric": "length", "better": "lower"}},
            "run": {
                "callbacks": [
                    {"name": "own_metric", "function": f"{__name__}:turns", "label": "length"}
                ]
            },
        }
    )
    record = Experiment(config, tmp_path / "run").run()
    assert record.last["length"] == 2.0 and record.best.value == 2.0
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["run"]["callbacks"] == [
        {"name": "own_metric", "function": f"{__name__}:turns", "label": "length"}
    ]


def turns(tree: Any) -> float:
    return float(len(tree.nodes) - 1)


def test_a_functions_mean_is_logged_under_its_name(tmp_path: Path) -> None:
    seen: list[float] = []

    def counted(tree: Any) -> float:
        seen.append(reds(tree))
        return seen[-1]

    result = train(tmp_path / "run", OwnMetric(function=counted), train={"iterations": 1})
    half = len(seen) // 2
    assert [value for _, value in result.curve("counted")] == pytest.approx(
        [sum(seen[:half]) / half, sum(seen[half:]) / half]
    )


def test_a_metric_under_a_name_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"own_metric: evaluations have 'return'; set another"):
        train(tmp_path / "run", OwnMetric(function=reds, label="return"))


def test_a_target_ends_the_run_as_finished(tmp_path: Path) -> None:
    result = train(tmp_path / "run", EarlyStopping(target=-1.0))
    assert (result.run.record.status, result.run.record.iterations) == ("finished", 0)
    assert result.run.record.stopped.startswith("return reached ")
    assert result.run.folder.checkpoints.choose().iteration == 0


@dataclass(frozen=True)
class Fixed(Callback):
    """Makes the evaluations' metric `fixed` what the list says."""

    values: tuple[float, ...] = (1.0, 3.0, 2.0, 3.0, 5.0, 6.0, 7.0)

    def on_evaluate(self, event):
        event.metrics["fixed"] = self.values[event.iteration]


LONG = {"train": {"environment_steps": 400, "episodes": 2, "iterations": 6}}


def test_patience_counts_evaluations_without_an_improvement(tmp_path: Path) -> None:
    """3 at iteration 1 is the best; 2 and an equal 3 are no improvement."""
    stop = EarlyStopping(metric="fixed", patience=2)
    result = train(tmp_path / "run", Fixed(), stop, **LONG)
    assert result.run.record.iterations == 3
    assert result.run.record.stopped == "fixed has not improved on 3 for 2 evaluations"


def test_a_metric_of_ones_own_may_be_watched_wherever_it_is_listed(tmp_path: Path) -> None:
    stop = EarlyStopping(metric="reds", target=-1.0)
    result = train(tmp_path / "run", stop, OwnMetric(function=reds), **LONG)
    assert result.run.record.iterations == 0
    assert "reds reached" in result.run.record.stopped


def test_a_metric_that_no_evaluation_has_is_one_line(tmp_path: Path) -> None:
    stop = EarlyStopping(metric="retrun", target=1.0)
    with pytest.raises(ConfigError, match=r"no metric 'retrun'; did you mean 'return'\?$"):
        train(tmp_path / "run", stop, **LONG)


def test_a_lower_metric_improves_by_falling(tmp_path: Path) -> None:
    stop = EarlyStopping(metric="fixed", better="lower", patience=1)
    assert train(tmp_path / "run", Fixed(), stop, **LONG).run.record.iterations == 1


def test_a_resumed_run_counts_the_evaluations_before(tmp_path: Path) -> None:
    """Interrupted behind the evaluation of iteration 2, it ends at 3 all the same."""

    @dataclass(frozen=True)
    class Interrupts(Callback):
        def on_rollout(self, event):
            if event.iteration == 2:
                signal.raise_signal(signal.SIGINT)

    stop = EarlyStopping(metric="fixed", patience=2)
    with pytest.raises(Interrupted):
        train(tmp_path / "run", Fixed(), Interrupts(), stop, **LONG)
    again = EarlyStopping(metric="fixed", patience=2)
    result = train(tmp_path / "run", Fixed(), again, resume=True, **LONG)
    assert result.run.record.iterations == 3


def test_a_stopped_run_that_is_resumed_stays_stopped(tmp_path: Path) -> None:
    for resume in (False, True):
        stop = EarlyStopping(metric="fixed", patience=2)
        result = train(tmp_path / "run", Fixed(), stop, resume=resume, **LONG)
    assert result.run.record.iterations == 3 and len(measured(tmp_path / "run")) == 7


def test_samples_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train(tmp_path / "run", Samples(count=1, every=2), **LONG)
    first = json.loads((result.folder / "episodes.jsonl").read_text().splitlines()[0])
    err = capsys.readouterr().err
    assert f"iteration 0, item {first['item']}\n" in err
    assert f"turn 0, draft: {first['turns'][0]['actions']['draft']!r}" in err
    assert [f"iteration {n}, item" in err for n in range(7)] == [True, False] * 3 + [True]


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
        train(tmp_path / "run", reds)  # type: ignore[arg-type]
