"""Shipped callbacks by hand: when a run ends early, what is printed, means of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trees import chain

from colearn.contract import EvaluateEvent, Headline, Measured, StartEvent
from colearn.errors import ConfigError
from colearn.training.callbacks import EarlyStopping, OwnMetric, Samples

HEADLINE = Headline("cost", "lower")
PLACE: dict[str, Any] = {"environment_steps": 0, "task": None}


def evaluation(number: int, metrics: dict[str, float], **parts: Any) -> EvaluateEvent:
    given = {"trees": (), "episodes": (), **parts}
    return EvaluateEvent(**PLACE, iteration=number, metrics=metrics, headline=HEADLINE, **given)


def ended(
    stop: EarlyStopping,
    values: Sequence[float],
    *,
    metric: str = "fixed",
    earlier: Sequence[float] = (),
) -> tuple[int, str | None]:
    """The number of the evaluation that ends the run (0: its start), and the reason."""
    lines = [
        Measured(kind=kind, iteration=n, environment_steps=n, metrics={metric: value})
        for n, value in enumerate(earlier)
        for kind in ("update", "evaluation")
    ]
    given: dict[str, Any] = {"folder": Path(), "config": {}, "headline": HEADLINE}
    start = StartEvent(
        **PLACE, **given, iteration=len(earlier), resumed=bool(earlier), earlier=lines
    )
    stop.on_start(start)
    if start.stop is not None:
        return 0, start.stop
    for number, value in enumerate(values, start=1):
        event = evaluation(number, {metric: value})
        stop.on_evaluate(event)
        if event.stop is not None:
            return number, event.stop
    return len(values), None


VALUES = (1.0, 3.0, 2.0, 3.0, 5.0)


def test_patience_counts_evaluations_without_an_improvement() -> None:
    """3 at the second evaluation is the best; 2 and an equal 3 are no improvement."""
    reason = "fixed has not improved on 3 for 2 evaluations"
    assert ended(EarlyStopping(metric="fixed", patience=2), VALUES) == (4, reason)
    assert ended(EarlyStopping(metric="fixed", patience=3), VALUES) == (5, None)


def test_a_smaller_difference_than_the_least_change_is_no_improvement() -> None:
    stop = EarlyStopping(metric="fixed", patience=1, min_change=2.0)
    assert ended(stop, VALUES) == (2, "fixed has not improved on 1 for 1 evaluations")


def test_a_lower_metric_improves_by_falling() -> None:
    stop = EarlyStopping(metric="fixed", better="lower", patience=1)
    assert ended(stop, VALUES) == (2, "fixed has not improved on 1 for 1 evaluations")


@pytest.mark.parametrize(
    ("better", "target", "number", "value"), [("higher", 3.0, 2, 3), ("lower", 1.5, 1, 1)]
)
def test_a_target_ends_the_run(better: Any, target: float, number: int, value: int) -> None:
    stop = EarlyStopping(metric="fixed", better=better, target=target)
    assert ended(stop, VALUES) == (number, f"fixed reached {value}")


def test_the_headline_metric_has_a_direction_of_its_own() -> None:
    stop = EarlyStopping(target=2.0)
    assert ended(stop, (3.0, 2.0), metric="cost") == (2, "cost reached 2")


def test_evaluations_before_a_resume_count_and_updates_do_not() -> None:
    stop = EarlyStopping(metric="fixed", patience=2)
    assert ended(stop, VALUES[3:], earlier=VALUES[:3])[0] == 1


def test_a_run_that_it_has_ended_is_not_resumed() -> None:
    stop = EarlyStopping(metric="fixed", patience=2)
    assert ended(stop, VALUES[4:], earlier=VALUES[:4])[0] == 0


def test_a_metric_that_no_evaluation_has_is_one_line() -> None:
    stop = EarlyStopping(metric="fixde", patience=2)
    with pytest.raises(ConfigError, match=r"no metric 'fixde'; did you mean 'fixed'\?$"):
        ended(stop, VALUES)


def test_every_second_evaluation_prints_its_first_episode(
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples = Samples(count=1, every=2)
    turn = {"actions": {"ada": "red", "ben": "\x1b[2J"}}
    for number in range(4):
        episodes = [
            {"iteration": number, "item": item, "turns": [turn], "return": 0.5} for item in "xy"
        ]
        samples.on_evaluate(evaluation(number, {}, episodes=episodes))
    shown = "  turn 0, ada: 'red'\n  turn 0, ben: '\\x1b[2J'\n  return 0.5\n"
    expected = [f"iteration {number}, item x\n{shown}" for number in (0, 2)]
    assert capsys.readouterr().err == "".join(expected)


def passed(tree: Any) -> float | None:
    """None for an episode that is left out."""
    return tree.nodes[-1].metrics.get("passed")


def finished(value: float | None) -> Any:
    tree = chain([1.0])
    last = replace(tree.nodes[-1], metrics={"passed": value})
    return replace(tree, nodes=(*tree.nodes[:-1], last))


@pytest.mark.parametrize("label", [None, "share"])
def test_a_metric_of_ones_own_is_the_mean_over_the_episodes_that_have_it(label: str | None) -> None:
    metric, event = OwnMetric(function=passed, label=label), evaluation(0, {})
    event.trees = [finished(value) for value in (1.0, None, 0.0, 0.5)]
    metric.on_evaluate(event)
    assert event.metrics == {label or "passed": 0.5} and list(metric.adds) == [label or "passed"]


def test_a_metric_under_a_name_that_is_taken_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"own_metric: evaluations have 'return'; set another"):
        OwnMetric(function=passed, label="return").on_evaluate(evaluation(0, {"return": 1.0}))
