"""AQUA-RAT, MMLU and GPQA in the format of their published files, and MATH500 whole."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.debate import Debate, Solver
from colearn.tasks.debate.choices import letter_of, load_choices
from colearn.tasks.math_duo.checker import same_expression

RNG = np.random.default_rng(0)
NEEDS_MATH = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="math-verify is not installed"
)

AQUA = [
    {
        "question": "Two cars leave at 5 and 7 km/h. After how many hours are they 24 km apart?",
        "options": ["A)12", "B)2", "C)8", "D)3.5", "E)4"],
        "rationale": "24 / (7 - 5) = 12. Answer : A",
        "correct": "A",
    },
    {
        "question": "What is 3! + 1?",
        "options": ["A) 5", "B) 6", "C) 7", "D) 8", "E) 9"],
        "rationale": "6 + 1",
        "correct": "C",
    },
]
MMLU = 'What is 0 + 0?,0,0,1,"2, or 3",A\n"A question of\ntwo lines, ""quoted""?",,yes,no,7,C\n'
GPQA_NAMES = "Pre-Revision Question,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2"
GPQA = (
    f"{GPQA_NAMES},Incorrect Answer 3,Record ID,High-level domain\n"
    'x,"How heavy is it, in kg?","  5\n",4,3,"[2, 1]",rec1,Physics\n'
)
MATH500 = [
    {"problem": "Convert (0,3).", "answer": "\\left( 3, \\frac{\\pi}{2} \\right)", "level": 2},
    {"problem": "Solve x^2 < 4.", "answer": "(-2,2)", "level": 3},
    {"problem": "Who runs fastest?", "answer": "\\text{Evelyn}", "level": 2},
    {"problem": "Expand (x+1)^2.", "answer": "x^2+2x+1", "level": 1},
    {"problem": "One half?", "answer": "\\frac{1}{2}", "level": 1},
]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def questions_of(data: str) -> list[tuple[str, str]]:
    """Text and letter of all questions of a file."""
    questions = load_choices("generated", data, 4, 4, 0)["test"]
    return [(question.text, question.answers[0]) for question in questions]


@pytest.mark.parametrize("name", ["test.json", "test.jsonl"])
def test_aqua_rat_is_read_as_its_authors_give_it(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, "\n".join(map(json.dumps, AQUA)) + "\n")
    (cars, letter), (_, other) = questions_of(path)
    assert cars == (
        "Two cars leave at 5 and 7 km/h. After how many hours are they 24 km apart?\n"
        "A) 12\nB) 2\nC) 8\nD) 3.5\nE) 4\nThe answer is a letter."
    )
    assert (letter, other) == ("A", "C")
    assert questions_of(write(tmp_path / "list.json", json.dumps(AQUA))) == questions_of(path)


def test_mmlu_is_read_from_files_without_a_header_and_from_a_folder_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "test"
    folder.mkdir()
    path = write(folder / "abstract_algebra_test.csv", MMLU)
    expected = [
        ("What is 0 + 0?\nA) 0\nB) 0\nC) 1\nD) 2, or 3\nThe answer is a letter.", "A"),
        (
            'A question of\ntwo lines, "quoted"?\nA) \nB) yes\nC) no\nD) 7\n'
            "The answer is a letter.",
            "C",
        ),
    ]
    assert questions_of(path) == expected
    write(folder / "virology_test.csv", "Which?,1,2,3,4,D\n")
    assert [letter for _, letter in questions_of(str(folder))] == ["A", "C", "D"]


def test_mmlu_is_read_as_on_the_hub(tmp_path: Path) -> None:
    row = {"question": "Which?", "choices": ["a", "b", "c", "d"], "answer": 3}
    path = write(tmp_path / "mmlu.jsonl", json.dumps(row))
    assert questions_of(path) == [("Which?\nA) a\nB) b\nC) c\nD) d\nThe answer is a letter.", "D")]


def test_the_right_option_of_gpqa_is_not_always_the_first(tmp_path: Path) -> None:
    ((text, letter),) = questions_of(write(tmp_path / "gpqa_diamond.csv", GPQA))
    lines = text.splitlines()
    assert lines[0] == "How heavy is it, in kg?" and f"{letter}) 5" in lines
    assert sorted(line[3:] for line in lines[1:5]) == ["3", "4", "5", "[2, 1]"]
    many = GPQA.splitlines()[0] + "\n"
    many += "".join(f"x,Question {k}?,5,4,3,2,r{k},Physics\n" for k in range(200))
    letters = [letter for _, letter in questions_of(write(tmp_path / "many.csv", many))]
    assert min(letters.count(one) for one in "ABCD") >= 25  # 50 each if by chance
    assert questions_of(str(tmp_path / "many.csv")) == questions_of(str(tmp_path / "many.csv"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aqua.jsonl", json.dumps(AQUA[0] | {"correct": "F"})),
        ("aqua.jsonl", json.dumps({"question": "Which?"})),
        ("mmlu.jsonl", json.dumps({"question": "q", "choices": ["a", "b"], "answer": 2})),
        ("mmlu.jsonl", json.dumps({"question": "q", "choices": ["a", "b"], "answer": True})),
        ("mmlu.csv", "question,1,2,3,4,answer\n"),
        ("mmlu.csv", "only two,A\n"),
        ("gpqa.csv", GPQA.replace("Incorrect Answer 3", "Incorrect Answer")),
        ("list.json", "[3]"),
    ],
)
def test_a_row_of_no_such_format_is_named_with_its_line(
    name: str, text: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(ConfigError) as told:
        questions_of(path)
    line = str(told.value)
    assert line.startswith("task.test_data: ") and path in line and "\n" not in line
    assert "is no row of AQUA-RAT (question, options, correct), MMLU" in line


def test_a_comma_without_quotes_in_gpqas_file_is_one_line(tmp_path: Path) -> None:
    """It shifts the columns: ` in kg?` would be the correct answer."""
    path = write(tmp_path / "gpqa.csv", GPQA.replace('"How heavy is it, in kg?"', "How, in kg?"))
    told = rf"^task\.test_data: line 3 of {re.escape(path)} has 9 fields and its header 8; quote"
    with pytest.raises(ConfigError, match=told) as caught:
        questions_of(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^task\.test_data: cannot read .*absent\.json"):
        questions_of(str(tmp_path / "absent.json"))
    with pytest.raises(ConfigError, match=r"^task\.test_data: .* holds no \.csv file"):
        questions_of(str(tmp_path))


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"),
        ("(B)", "B"),
        ("B) 12", "B"),
        ("B. twelve apples", "B"),
        ("\\boxed{B}", "B"),
        ("**B**", "B"),
        ("$B$", "B"),
        ("A or B", None),
        ("A, B", None),
        ("(A) or (B)", None),
        ("D) vitamins A and B", "D"),
        ("[C] the third", "C"),
        ("F", None),
        ("b", None),
        ("Because it is so", None),
        ("A banana", None),
        ("", None),
        ("\\text{(B)}", "B"),
        ("\\boxed{(B)}", "B"),
        ("(A) vitamin C", "A"),
        ("[A] [B]", None),
        ("A) 1 B) 2", None),
        ("(A) is wrong, so (B)", None),
        ("(A) but the answer is B", None),
        ("A. No, rather B.", None),
    ],
)
def test_a_letter_is_read_where_there_is_one(answer: str, letter: str | None) -> None:
    assert letter_of(answer) == letter


@pytest.mark.parametrize("subject", ["choice", "expression"])
def test_every_subject_keeps_the_contract(subject: str) -> None:
    check_task(Debate(subject=subject, train=4, test=4), seeds=(0,), episodes=1)


def test_a_generated_question_has_its_sum_behind_the_right_letter() -> None:
    for question in load_choices("generated", None, 20, 20, 0)["train"]:
        asked, *options, _ = question.text.splitlines()
        shown = dict(option.split(") ") for option in options)
        assert len(set(shown.values())) == 4
        assert eval(asked.removeprefix("What is ").rstrip("?")) == int(shown[question.answers[0]])


def test_a_generated_sum_is_in_one_split_whatever_its_options() -> None:
    splits = load_choices("generated", None, 500, 200, 0)
    sums = {split: {q.text.splitlines()[0] for q in splits[split]} for split in splits}
    assert (len(sums["train"]), len(sums["test"])) == (500, 200)
    assert not sums["train"] & sums["test"]


@pytest.mark.parametrize(
    ("said", "paid"), [("#### A", 1.0), ("so\n#### (A)", 1.0), ("#### B", 0.0)]
)
def test_a_team_is_paid_for_the_letter(said: str, paid: float, tmp_path: Path) -> None:
    path = write(tmp_path / "test.json", json.dumps(AQUA[0]))
    assert played(Solver(subject="choice", test_data=path, train=4), said) == paid


@NEEDS_MATH
@pytest.mark.parametrize(
    ("row", "said", "paid"),
    [
        (0, "(3, \\pi/2)", 1.0),
        (0, "(3, \\pi)", 0.0),
        (1, "(-2, 2)", 1.0),
        (1, "[-2, 2]", 0.0),
        (2, "Evelyn", 1.0),
        (2, "\\text{Briana}", 0.0),
        (3, "1 + 2x + x^2", 1.0),
        (3, "(x+1)^2", 1.0),
        (3, "x^2+1", 0.0),
        (4, "0.5", 1.0),
        (4, "2", 0.0),
    ],
)
def test_math500_is_read_whole_and_compared_by_math_verify(
    row: int, said: str, paid: float, tmp_path: Path
) -> None:
    path = write(tmp_path / "test.jsonl", "\n".join(map(json.dumps, MATH500)))
    task = Solver(subject="expression", test_data=path, train=4)
    assert [str(item) for item in task.items("test")] == [one["problem"] for one in MATH500]
    assert played(task, f"#### {said}", row) == paid


@NEEDS_MATH
def test_an_answer_that_takes_for_ever_is_wrong() -> None:
    assert not same_expression("x+1", "x^{10^{10^{10}}}")
    assert not same_expression("(1,2)", "\\sum_{k=1}^{10^9} k^{k}")
    assert same_expression("(1,2)", "(1, 2)"), "the reader goes on after it"


def played(task: Any, said: str, row: int = 0) -> float:
    state = task.reset(task.items("test")[row], RNG)
    ((agent, _),) = joint_observations(task, state).items()
    return float(task.step(state, {agent: said}, RNG).reward)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def load_dataset(*names: str, split: str) -> Any:
        asked.append((*names, split))
        if "aqua" in names[0]:
            return AQUA
        if "gpqa" in names[0]:
            wrong = {f"Incorrect Answer {k}": str(k) for k in (1, 2, 3)}
            return [{"Question": "How heavy?", "Correct Answer": "5"} | wrong]
        row = {"question": "Which?", "choices": ["a", "b", "c", "d"], "answer": 1}
        return [
            row | {"subject": "virology"},
            row | {"question": "What?", "subject": "astronomy"},
        ]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return asked


@pytest.mark.parametrize(
    ("name", "asked", "count"),
    [
        ("aqua_test", ("deepmind/aqua_rat", "raw", "test"), 2),
        ("mmlu", ("cais/mmlu", "all", "test"), 2),
        ("mmlu_stem", ("cais/mmlu", "all", "test"), 1),
        ("gpqa", ("Idavidrein/gpqa", "gpqa_diamond", "train"), 1),
    ],
)
def test_a_benchmark_is_asked_for_by_its_name(
    name: str, asked: tuple[str, ...], count: int, hub: list[Any]
) -> None:
    task = Solver(subject="choice", test_data=name, train=4)
    assert hub == [asked] and len(task.items("test")) == count


@pytest.mark.parametrize("name", ["aqua_test", "gpqa"])
def test_a_test_split_is_not_trained_on(name: str, hub: list[Any]) -> None:
    with pytest.raises(ConfigError, match=f"^task.data: '{name}' is a test split; set task.test_d"):
        Debate(subject="choice", data=name)
    assert hub == []


def test_aqua_rat_is_tested_on_its_official_test_split(hub: list[Any]) -> None:
    with pytest.raises(ConfigError, match="leaves no question to train"):
        Solver(subject="choice", data="aqua")  # here the same questions
    assert [split for _, _, split in hub] == ["train", "test"]
