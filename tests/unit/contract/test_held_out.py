"""Rows that are held out: a seeded draw, equal rows on one side, both sizes in one line."""

from __future__ import annotations

import json
import math

import pytest

from colearn.contract.held_out import hold_out, row_key, separate
from colearn.programs.gateway.items import read_items
from colearn.programs.workflow.declared import DeclaredWorkflow
from colearn.tasks.coder_tester.data import load_problems as coder_problems
from colearn.tasks.coop_humaneval.data import load_problems as joint_problems
from colearn.tasks.dataset.prompt import AskedPrompt
from colearn.tasks.dataset.task import Dataset
from colearn.tasks.debate.choices import load_choices
from colearn.tasks.environment.task import Environment
from colearn.tasks.math_duo.data import load_problems as math_problems
from colearn.tasks.search.items import load_questions
from colearn.tasks.search.world import World
from colearn.tasks.writing.arxiv import ArXiv
from colearn.tasks.writing.data import load_texts
from colearn.text.notes import note_once


@pytest.fixture(autouse=True)
def _every_note_anew():
    note_once.cache_clear()


def test_a_sorted_file_is_held_out_across_its_classes():
    """Of 100 rows of 10 sorted classes, 20 drawn rows miss 5 or more classes with probability
    below 1e-4 (hypergeometric); the last 20 rows have two."""
    splits = hold_out(range(100), str, size=20, source="rows")
    assert len({row // 10 for row in splits["test"]}) > 5
    assert list(splits["train"]) == sorted(set(range(100)) - set(splits["test"]))


def test_the_first_rows_of_the_held_out_ones_are_a_sample_too():
    test = hold_out(range(100), str, size=50, source="rows")["test"]
    assert list(test) != sorted(test)
    assert len({row // 10 for row in test[:10]}) > 3


def test_the_same_rows_are_held_out_every_time():
    assert hold_out(range(50), str, size=5, source="a") == hold_out(
        range(50), str, size=5, source="b"
    )


@pytest.mark.parametrize(
    "alike",
    [
        ("What is 2 + 2?", "What is  2 + 2? \r\n"),
        ("caf\u00e9", "cafe\u0301"),
        ({"q": "one ", "a": 1}, {"a": 1, "q": "one"}),
        (
            AskedPrompt(text="one", system="be brief"),
            AskedPrompt(text="one\n", system="be brief "),
        ),
    ],
)
def test_rows_that_differ_in_spaces_only_are_in_one_split(alike):
    rows = [f"other {number}" for number in range(6)]
    splits = hold_out([*rows, *alike] * 2, lambda row: row, size=5, source="rows")
    assert (alike[0] in splits["test"]) == (alike[1] in splits["test"])
    assert (alike[0] in splits["train"]) == (alike[1] in splits["train"])
    kept = separate([*rows, alike[1]], [alike[0]], lambda row: row, source="rows")["train"]
    assert kept == tuple(rows)


@pytest.mark.parametrize("copies", [2, 3, 12])
@pytest.mark.parametrize("size", [1, 3, 12, 40])
def test_equal_rows_are_in_one_split(copies, size):
    rows = [(row, copy) for copy in range(copies) for row in range(12)]
    splits = hold_out(rows, lambda row: row[0], size=min(size, len(rows) - 1), source="rows")
    train, test = ({row for row, _ in splits[split]} for split in ("train", "test"))
    assert train and test and not train & test
    assert sorted((*splits["train"], *splits["test"])) == sorted(rows)
    assert len(splits["test"]) <= max(size, copies)


def test_a_row_that_is_most_of_the_data_is_trained_on():
    splits = hold_out(["often"] * 98 + ["rare", "rarer"], str, size=10, source="rows")
    assert set(splits["train"]) == {"often"} and sorted(splits["test"]) == ["rare", "rarer"]


def test_the_smallest_group_is_held_out_where_every_group_exceeds_the_size():
    splits = hold_out(["a"] * 5 + ["b"] * 3 + ["c"] * 4, str, size=1, source="rows")
    assert splits["test"] == ("b",) * 3


def test_rows_that_are_all_alike_are_split_and_it_is_said(capsys):
    splits = hold_out(["a"] * 4, str, size=1, source="rows")
    assert splits == {"train": ("a",) * 3, "test": ("a",)}
    assert capsys.readouterr().err == (
        "note: rows: 3 rows to train on, 1 held out, drawn with a fixed seed; all rows are alike, "
        "so those held out are trained on, too\n"
    )


def test_an_only_row_is_in_both_splits_and_it_is_said(capsys):
    assert hold_out(["a"], str, size=1, source="rows") == {"train": ("a",), "test": ("a",)}
    assert capsys.readouterr().err == (
        "note: rows: 1 rows to train on, 1 held out, drawn with a fixed seed; it is the only row, "
        "so it is trained on, too\n"
    )


def test_one_line_has_both_sizes(capsys):
    hold_out(["a", "b", "c", "d", "a"], str, size=1, source="task.data: mine.jsonl")
    separate(["a", "b"], ["b", "c"], str, source="task.test_data: other.jsonl")
    assert capsys.readouterr().err.splitlines() == [
        "note: task.data: mine.jsonl: 4 rows to train on, 1 held out, drawn with a fixed seed; "
        "1 repeat another row and are in its split",
        "note: task.test_data: other.jsonl: 1 rows to train on, 2 held out; 1 rows are not trained "
        "on, because they are held out",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [2, {"c": 3}]}, {"b": [2, {"c": 3}], "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": "1"}, {"a": 1}, False),
        ([1, 2], [2, 1], False),
        ({"a": None}, {}, False),
    ],
)
def test_a_row_is_known_by_all_of_its_fields(one, other, same):
    assert (row_key(one) == row_key(other)) is same


CLASSES = ("red", "blue", "green", "grey", "pink")
SORTED = [f"{colour} {number}" for colour in CLASSES for number in range(12)]
"""Sixty texts, sorted by class."""


class Still:
    """An environment that is over at once."""

    def reset(self, **row):
        return row["text"]


def _given(tmp_path, rows, name="rows.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def _dataset(path):
    task = Dataset(str(path), "nowhere:reward", prompt="text")
    return {split: [item.prompt.text for item in task.items(split)] for split in ("train", "test")}


def _environment(path):
    task = Environment(f"{__name__}:Still", path=str(path))
    splits = ("train", "test")
    return {split: [item.columns["text"] for item in task.items(split)] for split in splits}


def _search(path):
    splits, _ = load_questions(str(path), World(), ())
    return {split: [question.text for question in splits[split]] for split in splits}


def _math(path):
    splits = math_problems(str(path), None, 1, 1, 0)
    return {split: [problem.question for problem in splits[split]] for split in splits}


def _choices(path):
    splits = load_choices(str(path), None, 1, 1, 0)
    return {split: [question.text.split("\n")[0] for question in splits[split]] for split in splits}


def _coder(path):
    splits = coder_problems(str(path), None, 3)
    return {split: [problem.question for problem in splits[split]] for split in splits}


def _joint(path):
    splits = joint_problems(str(path))
    return {split: [problem.summary for problem in splits[split]] for split in splits}


def _texts(path):
    return load_texts(ArXiv.source, str(path), "text")


def _gateway(path):
    splits = ("train", "test")
    return {split: [row["text"] for row in read_items(str(path), split)] for split in splits}


def _graph(path):
    graph = path.with_name("graph.yaml")
    graph.write_text(
        f"items: {path.name}\n"
        "nodes: [{name: answer, role: answerer, prompt: '{text}'}]\n"
        "rewards: [{score: f1, field: answer, gold: answer_text}]\n"
    )
    task = DeclaredWorkflow(str(graph))
    return {split: [row["text"] for row in task.items(split)] for split in ("train", "test")}


def _function(text):
    name = text.replace(" ", "_")
    return {
        "prompt": f'def {name}(x):\n    """{text}"""\n',
        "entry_point": name,
        "test": f"def check(candidate):\n    assert candidate(1) == 1\n\ncheck({name})",
    }


READERS = {
    "dataset": (_dataset, lambda text: {"text": text}, 0.1),
    "environment": (_environment, lambda text: {"text": text}, 0.1),
    "search": (_search, lambda text: {"question": text, "answers": ["a"]}, 0.2),
    "math_duo": (_math, lambda text: {"problem": text, "answer": "1"}, 0.1),
    "choices": (
        _choices,
        lambda text: {"question": text, "options": ["A)1", "B)2"], "correct": "A"},
        0.1,
    ),
    "coder_tester": (
        _coder,
        lambda text: {"question": text, "inputs": ["1"], "outputs": ["1"]},
        0.2,
    ),
    "coop_humaneval": (_joint, _function, 0.2),
    "writing": (_texts, lambda text: {"text": text}, 0.1),
    "gateway": (_gateway, lambda text: {"text": text}, 0.2),
    "graph": (_graph, lambda text: {"text": text, "answer_text": "a"}, 0.2),
}


@pytest.mark.parametrize("task", READERS)
def test_every_task_holds_out_a_sample_of_a_sorted_file_and_says_both_sizes(tmp_path, capsys, task):
    read, row, share = READERS[task]
    splits = read(_given(tmp_path, map(row, SORTED)))
    size = round(len(SORTED) * share)
    assert len(splits["test"]) == size
    assert sorted((*splits["train"], *splits["test"])) == sorted(SORTED)
    assert len({text.split()[0] for text in splits["test"]}) > 2  # the last rows: one or two
    lines = [line for line in capsys.readouterr().err.splitlines() if "held out" in line]
    assert len(lines) == 1
    assert f"{len(SORTED) - size} rows to train on, {size} held out" in lines[0]


@pytest.mark.parametrize("task", READERS)
def test_every_task_has_equal_rows_in_one_split(tmp_path, task):
    read, row, _ = READERS[task]
    splits = read(_given(tmp_path, [row(text) for _ in range(2) for text in SORTED]))
    assert splits["train"] and splits["test"]
    assert not set(splits["train"]) & set(splits["test"])


def test_a_file_of_held_out_rows_is_kept_and_its_trained_prompts_are_counted(tmp_path, capsys):
    train = _given(tmp_path, [{"prompt": f"say {n}"} for n in range(6)])
    test = _given(tmp_path, [{"prompt": f"say {n}"} for n in range(4, 9)], "test.jsonl")
    task = Dataset(str(train), "nowhere:reward", test_path=str(test))
    assert (len(task.items("train")), len(task.items("test"))) == (6, 5)
    assert capsys.readouterr().err == (
        f"note: task.path: {train}: 6 rows to train on, 5 held out; 2 of those held out are "
        "trained on, too: remove them from one\n"
    )


def test_the_draw_misses_few_classes():
    """The bound of the first test, by hand: at most C(10, 5) choices of five missed classes, each
    with probability C(50, 20) / C(100, 20)."""
    assert math.comb(10, 5) * math.comb(50, 20) / math.comb(100, 20) < 1e-4
