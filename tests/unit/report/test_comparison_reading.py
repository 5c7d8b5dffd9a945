"""Reading runs, and what the headline says of them."""

from __future__ import annotations

import json
from typing import Any

import fabricated_runs as fabricated
import pytest

from colearn.contract import Headline
from colearn.errors import CheckpointError
from colearn.runs.over_seeds import MeanEstimate
from colearn.runs.record import RunFolder, read_run
from colearn.runs.report import write_report
from colearn.runs.report.finding import compare_pairs, headline
from colearn.runs.report.show import LONGEST_HEADLINE, in_three_lines


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", "{", r"run\.json: not JSON"),
        ("run.json", "[]", r"run\.json: must hold a JSON object"),
        ("metrics.jsonl", "nonsense\n{}\n", r"metrics\.jsonl:1: not JSON"),
        ("metrics.jsonl", "", "holds no evaluation"),
        ("metrics.jsonl", '{"iteration": 0}\n', "lacks 'kind'"),
        ("metrics.jsonl", '{"kind": "update", "iteration": "x"}\n', r"iteration: input should be"),
        ("episodes.jsonl", '{"iteration": "last", "item": "a"}\n', r"jsonl:1: iteration: input"),
        ("config.yaml", "a: [", r"config\.yaml: not YAML"),
    ],
)
def test_an_unreadable_run_is_one_line(tmp_path, file, content, message):
    fabricated.write_run(tmp_path / "runs" / "magrpo-s0", "magrpo", 0)
    (tmp_path / "runs" / "magrpo-s0" / file).write_text(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        write_report(tmp_path)
    assert "\n" not in str(caught.value)


def test_reading_survives_a_cut_line_and_repeated_iterations(tmp_path):
    folder = tmp_path / "run"
    fabricated.write_run(folder, "magrpo", 0)
    metrics = folder / "metrics.jsonl"
    lines = metrics.read_text().splitlines()
    repeated = json.loads(lines[-1])
    repeated["metrics"]["return"] = float("nan")
    metrics.write_text("\n".join([*lines, json.dumps(repeated), '{"kind": "eval']))
    evaluations = read_run(RunFolder(folder)).evaluations
    assert len(evaluations) == 13
    assert evaluations[-1].metrics["return"] is None


def fullest(*told: Any) -> str:
    return headline(*told)[0]


def ends(first: float, last: float, gain: tuple[float, float]) -> Any:
    def around(mean: float) -> MeanEstimate:
        return MeanEstimate(mean=mean, low=mean - 0.1, high=mean + 0.1, seeds=5)

    change = MeanEstimate(mean=last - first, low=gain[0], high=gain[1], seeds=5)
    return around(first), around(last), change


def test_headline_says_what_the_intervals_allow():
    pairs = compare_pairs({"a": [0.1, 0.5, 0.3, 0.4, 0.2], "b": [0.2, 0.4, 0.1, 0.5, 0.3]})
    text = fullest({"a": ends(0, 0.4, (0.3, 0.5)), "b": ends(0, 0.1, (-0.1, 0.2))}, pairs)
    assert text == (
        "Evaluation return: a improved from 0.000 [-0.100, 0.100] to 0.400 [0.300, 0.500]; b shows "
        "no clear change (from 0.000 [-0.100, 0.100] to 0.100 [0.000, 0.200]); no pair differs at "
        "95%."
    )


def test_headline_of_a_metric_that_should_fall_calls_its_fall_an_improvement():
    judged = Headline("nash_conv", "lower")
    pairs = compare_pairs({"a": [0.0, 0.1, 0.2, 0.3], "b": [1.0, 1.1, 1.2, 1.3]}, judged)
    text = fullest({"a": ends(0.9, 0.6, (-0.4, -0.2))}, pairs, judged)
    assert text == (
        "Evaluation nash_conv (lower is better): a improved from 0.900 [0.800, 1.000] to 0.600 "
        "[0.500, 0.700]; a ends below b (probability 1.00 [0.40, 1.00])."
    )


def test_headline_of_many_algorithms_names_the_lowest_mean_where_lower_is_better():
    judged = Headline("nash_conv", "lower")
    changes = {name: ends(0.9, 0.1 * n, (-0.9, -0.1)) for n, name in enumerate("abcde", 2)}
    text = fullest(changes, [], judged)
    assert "5 of 5 algorithms improved; the lowest final mean is a's, 0.200" in text


def test_headline_names_a_fall_and_a_difference():
    pairs = compare_pairs({"a": [1.0, 1.1, 1.2, 1.3], "b": [0.0, 0.1, 0.2, 0.3]})
    text = fullest({"a": ends(0.5, 0.2, (-0.5, -0.1))}, pairs)
    assert "a fell from 0.500 [0.400, 0.600] to 0.200 [0.100, 0.300]" in text
    assert "a ends above b (probability 1.00 [0.40, 1.00])" in text


def test_three_seeds_never_differ_however_far_apart():
    pairs = compare_pairs({"a": [9.0, 9.1, 9.2], "b": [0.0, 0.1, 0.2]})
    assert not any(pair.differs for pair in pairs)
    assert "too few seeds to tell any pair apart at 95%" in fullest({}, pairs)


def test_three_seeds_never_improve_however_far_they_went():
    three = MeanEstimate(mean=9.0, low=8.9, high=9.1, seeds=3)
    assert fullest({"a": (three, three, three)}, []) == (
        "Evaluation return: a went from 9.00 [8.90, 9.10] to 9.00 [8.90, 9.10] "
        "(too few seeds to call it a change at 95%; four can)."
    )


def test_an_algorithm_without_finite_values_is_not_called_one_seed():
    assert fullest({"a": (None, None, None)}, []) == (
        "Evaluation return: a has no finite return at its ends."
    )


def test_what_holds_of_every_algorithm_is_said_once():
    three = MeanEstimate(mean=9.0, low=8.9, high=9.1, seeds=3)
    one = MeanEstimate(mean=9.0, low=None, high=None, seeds=1)
    span = "from 9.00 [8.90, 9.10] to 9.00 [8.90, 9.10]"
    assert fullest({"a": (three,) * 3, "b": (three,) * 3}, []) == (
        f"Evaluation return: a went {span}; b went {span}; "
        "too few seeds to call any of it a change at 95% (four can)."
    )
    assert fullest({"a": (one,) * 3, "b": (three,) * 3}, []) == (
        f"Evaluation return: a went from 9 to 9 (one seed, so no interval); b went {span} "
        "(too few seeds to call it a change at 95%; four can)."
    )


def test_headline_of_many_algorithms_counts_them():
    finals = {str(n): [n + 0.1 * k for k in range(5)] for n in range(6)}
    changes = {name: ends(0, float(name), (0.3, 0.5)) for name in finals}
    text = fullest(changes, compare_pairs(finals))
    assert "6 of 6 algorithms improved; the highest final mean is 5's" in text
    assert "15 of 15 pairs differ at 95%" in text or "pairs differ at 95%" in text


def test_a_headline_is_three_lines_long_and_the_rest_is_notes():
    """The values of four algorithms are 330 characters long, which leaves no room for notes."""
    finals = {f"algorithm_{n}": [n + 0.1 * k for k in range(5)] for n in range(4)}
    changes = {name: ends(0, float(name[-1]), (0.3, 0.5)) for name in finals}
    forms = headline(changes, compare_pairs(finals))
    assert len(forms[0]) > 300
    short, long, last = "A note.", f"It {'really ' * 40}is.", "The last note."
    head, notes = in_three_lines(forms, [short, "", long, last])
    assert head == (
        "Evaluation return: 4 of 4 algorithms improved; the highest final mean is algorithm_3's, "
        "3.00 [2.90, 3.10]; 6 of 6 pairs differ at 95%. A note. The last note. The report has 2 "
        "more notes."
    )
    assert notes == [forms[0], long]


@pytest.mark.parametrize("length", [1, 200, 299, 300, 301, 5000])
@pytest.mark.parametrize("count", [0, 1, 12])
def test_no_headline_is_longer_and_nothing_of_it_is_lost(length, count):
    sentences = [f"{'x' * length}.", *(f"{n} {'y' * (length // 3)}." for n in range(count))]
    head, notes = in_three_lines(sentences[:1], sentences[1:])
    assert len(head) <= LONGEST_HEADLINE
    assert [one for one in sentences[1:] if one not in head and one not in notes] == []
    assert sentences[0] in head or (head.startswith("xxx") and " ..." in head)


def test_a_finding_that_is_cut_stands_whole_in_the_notes():
    finding = f"{'label ' * 90}improved."
    head, notes = in_three_lines([finding], [])
    assert head.endswith(" ... The report has 1 more note.") and notes == [finding]
