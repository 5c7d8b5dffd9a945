"""A report says by turn what the critics explain, beside what can be, and judges what it means."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest
from undrawn import undrawn

from colearn.runs.record.fields import CriticLine, CriticTurn
from colearn.runs.report import write_report
from colearn.runs.report.critic_worth import _ceiling
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise


def turn(at: int = 0, **changes: Any) -> dict[str, Any]:
    """100 returns with variance 4, of which the critic leaves 3, with its bias 3.5, means by item
    2.5; 30 groups of two have a variance of 1 within."""
    usual = {
        "turn": at,
        "number": 100,
        "variance": 3.96,
        "error_variance": 2.97,
        "error_square": 3.465,
        "item_error_variance": 2.475,
        "within": 30.0,
        "freedom": 30,
    }
    return usual | changes


def write_runs(
    folder: Path,
    turns: list[list[dict[str, Any]]],
    *,
    signal: float | None = 0.2,
    seeds: tuple[int, ...] = (0, 1),
) -> None:
    """Runs with a critic, and of groups without one."""
    for algorithm in ("collm_cc", "magrpo"):
        for seed in seeds:
            run = folder / "runs" / f"{algorithm}-s{seed}"
            fabricated.write_run(run, algorithm, seed)
            path = run / "metrics.jsonl"
            lines = [json.loads(text) for text in path.read_text().splitlines()]
            for line in lines:
                if line["kind"] == "update" and signal is not None:
                    line["metrics"] |= {"ada/grad_signal": signal, "critic/team/grad_signal": 0.9}
            fabricated.write_jsonl(path, lines)
            if algorithm == "collm_cc":
                told = [
                    {
                        "iteration": number,
                        "turns": some,
                        "calibration": [[0.0, 1.0, 10], [2.0, 3.0, 10]],
                    }
                    for number, some in enumerate(turns, start=1)
                ]
                fabricated.write_jsonl(run / "critic.jsonl", told)


def reported(folder: Path) -> tuple[dict[str, Any], str, str]:
    """The summary, table.md and report.html."""
    write_report(folder)
    summary = json.loads((folder / "summary.json").read_text())
    return summary, (folder / "table.md").read_text(), (folder / "report.html").read_text()


def summary_of(folder: Path, turns: list[list[dict[str, Any]]], **settings: Any) -> dict[str, Any]:
    """The summary of such runs as a report writes it, without the report's pictures."""
    write_runs(folder, turns, **settings)
    summarise(read_source(folder)).write(folder / "summary.json")
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e200])
@pytest.mark.parametrize("field", ["variance", "error_variance", "error_square", "within"])
def test_a_turn_with_a_number_that_cannot_be_squared_is_left_out(number, field):
    """Rewards of 1e200 have an infinite variance."""
    names = ("variance", "error_variance", "error_square", "item_error_variance")
    usable = {"turn": 0, "number": 10, **dict.fromkeys(names, 1.0)}
    points = [(0.5, 0.25, 3), (number, 0.25, 3), (0.5, -number, 3)]
    line = CriticLine(iteration=1, turns=[usable, usable | {field: number}], calibration=points)
    assert line.turns == (CriticTurn(**usable),) and line.calibration == ((0.5, 0.25, 3),)


def test_a_variance_near_0_gives_no_ceiling():
    """1 - (30 / 30) / 5e-324 is minus infinity."""
    assert _ceiling([CriticTurn(**turn(variance=5e-324))]) is None


def told(summary: dict[str, Any]) -> str:
    return " ".join([summary["headline"], *summary["notes"]])


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, str]:
    """The report of runs that are alike in every turn."""
    folder = tmp_path_factory.mktemp("usual")
    write_runs(folder, [[turn()]] * 4)
    with undrawn():
        return reported(folder)


def test_what_is_explained_is_pooled_over_the_second_half_of_the_updates(tmp_path: Path) -> None:
    # 1 - (100 * 1 + 300 * 2) / (100 * 2 + 300 * 4) of the last two updates
    first = turn(number=1000, variance=1.0, error_variance=50.0)
    late = [
        turn(variance=2.0, error_variance=1.0),
        turn(number=300, variance=4.0, error_variance=2.0),
    ]
    summary = summary_of(tmp_path, [[first], [first], [late[0]], [late[1]]])
    (told,) = summary["algorithms"]["collm_cc"]["critic"]["turns"]
    assert told["explained"]["mean"] == pytest.approx(1 - 700 / 1400)


@pytest.mark.usefixtures("no_figures")
def test_each_turn_has_explained_variance_bias_item_means_and_a_ceiling(tmp_path: Path) -> None:
    write_runs(tmp_path, [[turn(0), turn(1, freedom=0, within=0.0)]] * 4)
    summary, table, _ = reported(tmp_path)
    first, second = summary["algorithms"]["collm_cc"]["critic"]["turns"]
    assert first["explained"]["mean"] == pytest.approx(0.25)
    assert first["r2"]["mean"] == pytest.approx(1 - 3.5 / 4)
    assert first["item_mean"]["mean"] == pytest.approx(1 - 2.5 / 4)
    assert first["ceiling"] == pytest.approx([0.75, 0.75, 0.75])  # 1 - 1 / 4
    assert second["ceiling"] is None
    section = table.partition("## What the critics explain")[2]
    assert "| collm_cc, turn 0 | 0.25 " in section and "0.75 [0.75, 0.75]" in section
    assert summary["algorithms"]["magrpo"]["critic"] is None and "magrpo, turn" not in section


@pytest.mark.usefixtures("no_figures")
def test_of_one_run_nothing_is_called_a_mean_over_seeds(tmp_path: Path) -> None:
    write_runs(tmp_path, [[turn()]] * 4, seeds=(0,))
    _, table, page = reported(tmp_path)
    section = table.partition("## What the critics explain")[2]
    assert section.lstrip().startswith("Shares of the variance")
    assert "over seeds" not in table and "over seeds" not in page


def test_the_sentence_judges_noise_ceiling_and_critic(
    usual: tuple[dict[str, Any], str, str],
) -> None:
    # a share of 0.2 repeats: the noise is sqrt(1 / 0.2 - 1) = 2 times the gradient
    summary, _, page = usual
    sentence = (
        "collm_cc: noise limits learning (2 times the gradient in a step); a critic can explain up "
        "to 0.75 of it; this critic explains up to 0.25, so this run does not test whether a "
        "critic helps; means by item explain 0.375 (critic.baseline: item)."
    )
    assert sentence in told(summary)
    assert "does not test whether a critic helps" in page


def test_a_critic_that_explains_what_can_be_explained_needs_no_caution(tmp_path: Path) -> None:
    explained = turn(error_variance=1.1, item_error_variance=3.0)
    summary = summary_of(tmp_path, [[explained]] * 4)
    assert "does not test" not in told(summary)
    assert "this critic explains up to 0.722." in told(summary)


def test_little_noise_and_a_low_ceiling_are_told(tmp_path: Path) -> None:
    quiet = turn(within=114.0, error_variance=3.5, item_error_variance=3.9)
    summary = summary_of(tmp_path, [[quiet]] * 4, signal=0.8)
    assert "noise hardly limits learning (0.5 times the gradient" in told(summary)
    assert "a critic can explain little of it (at most 0.05)" in told(summary)


def test_a_share_below_zero_is_told_as_none(tmp_path: Path) -> None:
    worse = turn(within=126.0, error_variance=4.5, item_error_variance=4.5)  # 1 - 126 / 120 < 0
    summary = summary_of(tmp_path, [[worse]] * 4)
    expected = "; a critic can explain none of it; this critic explains none of it."
    assert expected in told(summary)


def test_what_was_not_measured_is_told(tmp_path: Path) -> None:
    unknown = turn(freedom=0, within=0.0)
    summary = summary_of(tmp_path, [[unknown]] * 4, signal=None)
    assert "whether noise limits learning was not measured" in told(summary)
    assert "is unknown, because no joint history occurred twice" in told(summary)


def test_values_are_drawn_against_returns(usual: tuple[dict[str, Any], str, str]) -> None:
    _, _, page = usual
    assert "Values against returns" in page and "collm_cc: value against return" in page
