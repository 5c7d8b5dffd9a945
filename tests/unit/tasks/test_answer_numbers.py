"""Numbers read from final answers, against math-verify's and sympy's readings.

`numbers.tsv` has an answer, its value and the source of the value in each line. `none`: the answer
is no number, or math-verify's two readers (LaTeX, plain text) give it different values. Where both
misread an answer (`10*0` for "10 000" in LaTeX), the value is sympy's of the written-out number.
The last lines are worked out by hand: factorials, LaTeX's functions, and powers that are too large.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colearn.tasks.math_duo import MathDuo
from colearn.tasks.math_duo.checker import equal, number, plain_number, same_expression

pytest.importorskip("math_verify")
LINES = Path(__file__).with_name("numbers.tsv").read_text(encoding="utf-8").split("\n")[1:-1]
CASES = [tuple(line.split("\t")) for line in LINES]


def test_the_table_holds_two_hundred_answers():
    assert len({answer for answer, _, _ in CASES}) == len(CASES) >= 200


def test_every_answer_has_the_graders_value():
    for answer, value, source in CASES:
        expected = None if value == "none" else pytest.approx(float(value), rel=1e-9)
        assert number(answer) == expected, f"{answer}: {source}"


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("60", "60\\%", True),
        ("60", "60%", True),
        ("60", "60 percent", True),
        ("60\\%", "60", True),
        ("0.6", "60\\%", True),
        ("60\\%", "0.6", True),
        ("60\\%", "\\frac{3}{5}", True),
        ("60\\%", "60%", True),
        ("5", "500\\%", True),
        ("60\\%", "6", False),
        ("60", "0.6", False),
        ("100", "1", False),
        ("60\\%", "6000\\%", False),
        ("60\\%", "0.6\\%", False),
    ],
)
def test_a_percentage_equals_its_share_and_its_number_of_percent(gold, answer, right):
    """Math-Verify's verdicts (`verify`); "What percent ...?" has the answer 60 in GSM8K."""
    from math_verify import parse, verify

    boxed = [parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (gold, answer)]
    assert verify(*boxed, timeout_seconds=None) == right
    assert equal(number(answer), number(gold)) == same_expression(gold, answer) == right


@pytest.mark.parametrize("text", ["3,4", "1,2,3", "3,14", "1 23", "1e400", "1 000/3"])
def test_a_compact_answer_that_is_several_numbers_is_none(text):
    assert plain_number(text) is None


def test_gold_answers_that_may_be_read_as_several_numbers_are_left_out_in_one_line(
    tmp_path, capsys
):
    path = tmp_path / "problems.jsonl"
    rows = [{"problem": f"p{k}", "answer": a} for k, a in enumerate(["1,000", "3,4", "7", "3,14"])]
    path.write_text("\n".join(map(json.dumps, rows)))
    task = MathDuo(data=str(path))
    kept = [*task.items("train"), *task.items("test")]
    assert [problem.answer for problem in kept] == [1000.0, 7.0]
    assert capsys.readouterr().err.splitlines()[0] == (
        f"note: task.data: {path}: leaves out 2 of 4 rows, whose answers are not one number, such "
        "as '3,4'; write thousands as 1,234 and decimals as 0.5"
    )


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        ("9", "9.0000001", True),
        ("tea", "eat", False),
        ("\\text{Monday}", "monday", True),
        ("yx", "xy", True),
        ("101_2", "101_3", False),
        ("101_{2}", "101_2", True),
        ("x = 3", "y = 3", False),
        ("x = 3", "3", True),
        ("2", "2\\text{ m}, 3\\text{ m}", False),
        ("5", "\\mathbf{5}", True),
        ("9", "\\neq 9", False),
        ("9", "\\le 9", False),
        ("9", "> 9", False),
        ("\\le 9", "\\le 9", True),
        ("11", "5\\quad 6", False),
        ("56", "5'6\"", False),
        ("1000000", "1000001", False),
        ("12345678", "12,345,679", False),
        ("12345678", "12,345,678", True),
        ("-5", "\u20135", True),
        ("\\frac{5}{2}", "2\u00bd", True),
        ("3", "**3**", True),
        ("\\sqrt{3}", "\u221a3", True),
        ("(3,4)", "(4,3)", False),
        ("(3,4)", "(3,4).", True),
        ("\\text{yes}", "Yes.", True),
        ("x+1", "1+x", True),
    ],
)
def test_an_expression_is_the_gold_answers(gold, answer, same):
    """Each pair is decided by hand."""
    assert same_expression(gold, answer) is same
