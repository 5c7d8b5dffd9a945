"""The headline says nothing that its tables lack, and judges critics turn by turn."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest

from colearn.runs.over_seeds import MeanEstimate
from colearn.runs.report.critic_worth import TurnSummary, judged
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise
from colearn.runs.report.tables import tables

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> set[str]:
    """The numbers of a text, without those of names such as `s2`."""
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def figures_of(folder: Path) -> tuple[set[str], set[str], str]:
    """The numbers of the headline and the notes, those of the tables, and headline and notes."""
    summary = summarise(read_source(folder))
    told = "\n".join(table.markdown() for table in tables(summary))
    # the number of notes is in no table
    text = re.sub(r" The report has \d+ more notes?\.", "", summary.headline)
    text = "\n".join([text, *summary.notes])
    return numbers(text), numbers(told), text


def critic_turn(draw: random.Random, at: int) -> dict[str, Any]:
    variance = draw.choice([0.0, draw.uniform(0.1, 9.0)])
    known = draw.random() < 0.5
    return {
        "turn": at,
        "number": draw.randint(2, 400),
        "variance": variance,
        "error_variance": variance * draw.uniform(0.05, 1.3),
        "error_square": variance * draw.uniform(0.05, 2.0),
        "item_error_variance": variance * draw.uniform(0.05, 1.3),
        "within": variance * draw.uniform(0.0, 40.0) if known else 0.0,
        "freedom": 30 if known else 0,
    }


def made_up(folder: Path, seed: int) -> None:
    """Runs of one to six algorithms and one to six seeds: some beyond the budget, some untrained
    with equal evaluations, some with critics over up to seven turns."""
    draw = random.Random(seed)
    for name in draw.sample(["collm_cc", "magrpo", "collm_dc", "ac", "iac", "coma"], seed % 6 + 1):
        steps, untrained, turns = (
            draw.choice([400, 640, 35]),
            draw.random() < 0.2,
            draw.randint(0, 7),
        )
        for number in range(draw.randint(1, 6)):
            run = folder / "runs" / f"{name}-s{number}"
            fabricated.write_run(run, name, number)
            path = run / "metrics.jsonl"
            lines = [json.loads(text) for text in path.read_text().splitlines()]
            lines[-1]["environment_steps"] = steps + draw.randint(0, 40)
            if untrained:
                lines = [line for line in lines if line["kind"] == "evaluation"][:1]
                lines[0]["metrics"]["return"] = 0.25
                record = json.loads((run / "run.json").read_text()) | {"updates": 0}
                (run / "run.json").write_text(json.dumps(record))
            elif draw.random() < 0.7:
                fallen = draw.random() < 0.5
                for line in lines:
                    if line["kind"] == "update":
                        line["metrics"]["ada/grad_signal"] = draw.random()
                        line["metrics"]["advantage/zero"] = float(fallen)
                        line["metrics"]["best_return"] = draw.uniform(0, 2000)
            fabricated.write_jsonl(path, lines)
            if turns and not untrained:
                told = [
                    {
                        "iteration": at,
                        "turns": [critic_turn(draw, turn) for turn in range(turns)],
                        "calibration": [],
                    }
                    for at in (1, 2)
                ]
                fabricated.write_jsonl(run / "critic.jsonl", told)


@pytest.mark.parametrize("seed", range(9))
def test_every_number_of_the_headline_is_in_the_tables(tmp_path: Path, seed: int) -> None:
    made_up(tmp_path, seed)
    headline, tabled, text = figures_of(tmp_path)
    assert headline, text
    assert headline - tabled == set(), text


def share(mean: float) -> MeanEstimate:
    return MeanEstimate(mean=mean, low=None, high=None, seeds=1)


def summary(
    turn: int,
    explained: float | None,
    ceiling: tuple[float, float, float] | None,
    item_mean: float = 0.0,
) -> TurnSummary:
    return TurnSummary(
        turn=turn,
        explained=None if explained is None else share(explained),
        r2=None,
        item_mean=share(item_mean),
        ceiling=ceiling,
    )


NONE = (-0.01, -0.02, 0.0)


def test_a_ceiling_of_one_turn_is_not_that_of_another() -> None:
    """Two turns of 3,000 joint actions: the second turn's histories are all different, so that
    nothing bounds what the critic explains there."""
    sentence = judged("collm_cc", [summary(0, -0.1, NONE), summary(1, 0.851, None)], 2.0)
    assert sentence == (
        "collm_cc: noise limits learning (2 times the gradient in a step); at turn 0 a critic can "
        "explain none of it, and this critic explains none of it; at turn 1 how much a critic can "
        "explain is unknown, because no joint history occurred twice, and this critic explains up "
        "to 0.851."
    )


def test_without_a_ceiling_a_critic_is_not_said_to_explain_too_little() -> None:
    sentence = judged("collm_cc", [summary(0, 0.1, None)], None)
    assert sentence.endswith("occurred twice; this critic explains up to 0.1.")


def test_each_turn_is_compared_with_its_own_ceiling_and_item_means() -> None:
    turns = [summary(0, 0.5, (0.8, 0.7, 0.9)), summary(1, 0.1, (0.6, 0.5, 0.7), item_mean=0.4)]
    first, second = judged("x", turns, None).partition("; at turn 1 ")[::2]
    assert "does not test" not in first and "means by item" not in first
    assert second == (
        "a critic can explain up to 0.6 of it, and this critic explains up to 0.1, so this turn "
        "does not test whether a critic helps; means by item explain 0.4 (critic.baseline: item)."
    )


def test_a_critic_beyond_the_measured_ceiling_is_told_as_such() -> None:
    assert judged("x", [summary(0, 0.5, (0.1, 0.02, 0.2))], 2.0).endswith(
        "a critic can explain little of it (at most 0.1); this critic explains up to 0.5, which is "
        "above the interval of what can be explained, [0.02, 0.2]."
    )


@pytest.mark.parametrize(
    ("explained", "ceiling", "end"),
    [
        (
            0.5,
            (-0.1, -0.9, 0.8),
            "; how much a critic can explain is uncertain, [-0.9, 0.8]; this critic explains up to "
            "0.5, which is within the interval of what can be explained, [-0.9, 0.8].",
        ),
        (
            0.6,
            (0.5, 0.3, 0.7),
            "; a critic can explain up to 0.5 of it; this critic explains up to 0.6, which is "
            "within the interval of what can be explained, [0.3, 0.7].",
        ),
    ],
)
def test_a_ceiling_is_told_with_its_interval_where_the_estimate_alone_contradicts_the_critic(
    explained: float, ceiling: tuple[float, float, float], end: str
) -> None:
    assert judged("x", [summary(0, explained, ceiling)], 2.0).endswith(end)


def test_turns_of_one_judgement_are_named_together() -> None:
    turns = [summary(turn, -0.1, NONE) for turn in (0, 1, 2)]
    assert judged("x", [*turns, summary(3, None, None)], 2.0).endswith(
        "; at turns 0, 1 and 2 a critic can explain none of it, and this critic explains none of "
        "it; at turn 3 all returns were equal."
    )


def test_of_many_turns_those_with_the_largest_shares_are_told() -> None:
    turns = [summary(turn, (turn + 1) / 10, None) for turn in range(7)]
    sentence = judged("x", turns, 2.0)
    assert re.findall(r"at turn (\d)", sentence) == ["3", "4", "5", "6"]
    assert sentence.endswith("; the table has the other turns.")


def collapsed(folder: Path, seeds: int, metrics: dict[str, float]) -> str:
    """The headline of runs whose last updates have these metrics."""
    for seed in range(seeds):
        run = folder / "runs" / f"magrpo-s{seed}"
        fabricated.write_run(run, "magrpo", seed)
        evaluations = [
            line
            for text in (run / "metrics.jsonl").read_text().splitlines()
            if (line := json.loads(text))["kind"] == "evaluation"
        ]
        updates = [
            evaluations[0]
            | {"kind": "update", "iteration": at, "metrics": {"return": 0.5, "best_return": 1.0}}
            for at in range(1, 21)
        ]
        for line in updates[10:]:
            line["metrics"] = metrics
        fabricated.write_jsonl(run / "metrics.jsonl", [*evaluations, *updates])
    return figures_of(folder)[2]


FALLEN = {"return": 0.0, "best_return": 0.0, "ada/top_answer": 1.0, "ada/grad_norm": 0.0}


def test_a_collapse_is_in_the_headline_with_its_beginning_and_remedy(tmp_path: Path) -> None:
    assert (
        "magrpo, seed 0: collapse since update 11: an agent gives one answer to all prompts and no "
        "trained model has a gradient; mean return 0, best episode 1; first remedy: lower "
    ) in collapsed(tmp_path, 1, FALLEN)


def test_the_headline_itself_names_who_collapsed(tmp_path: Path) -> None:
    collapsed(tmp_path, 1, FALLEN)
    head = summarise(read_source(tmp_path)).headline
    assert "Collapsed, or nothing is learned: magrpo." in head


def test_of_many_collapsed_runs_the_first_are_told(tmp_path: Path) -> None:
    headline = collapsed(tmp_path, 5, FALLEN)
    assert headline.count("collapse since update 11") == 3
    assert "The table has the other collapsed runs." in headline
    table = next(t for t in tables(summarise(read_source(tmp_path))) if t.name == "collapse")
    assert [name for name, _ in table.rows] == [f"magrpo, seed {seed}" for seed in range(5)]


def test_a_solved_run_is_no_collapse_in_the_headline(tmp_path: Path) -> None:
    assert "collapse" not in collapsed(tmp_path, 1, FALLEN | {"return": 1.0})


def test_the_headline_says_which_runs_ended_early_and_why(tmp_path):
    reason = "return reached 0.9125"
    for seed in (0, 1):
        run = tmp_path / "runs" / f"magrpo-s{seed}"
        fabricated.write_run(run, "magrpo", seed)
        record = json.loads((run / "run.json").read_text())
        record["stopped"] = reason if seed == 1 else None
        (run / "run.json").write_text(json.dumps(record))
    headline, tabled, text = figures_of(tmp_path)
    assert f"magrpo, seed 1, ended early: {reason}." in text
    assert "seed 0" not in text
    assert {"0.9125", "1"} <= tabled & headline
