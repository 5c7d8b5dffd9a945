"""A row that a task cannot read is one line with the file and its line, whatever it holds."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import types
import zlib

import pytest

from colearn.errors import ColearnError
from colearn.json_text import read_json
from colearn.qa import Folder
from colearn.tasks.coder_tester import CoderTester
from colearn.tasks.coder_tester.hub import private_cases
from colearn.tasks.coop_humaneval import CoopHumanEval
from colearn.tasks.debate import Debate
from colearn.tasks.house_build.file import read_houses
from colearn.tasks.math_duo import MathDuo
from colearn.tasks.search import ParallelRetrieval
from colearn.tasks.writing.arxiv import ArXiv
from colearn.tasks.writing.tldr import TLDR
from colearn.workflow.declared import DeclaredWorkflow

TASKS = [CoderTester, CoopHumanEval, MathDuo, ParallelRetrieval, TLDR, ArXiv, Debate]
DEEP = "[" * 100_000 + "]" * 100_000
GRAPH = """
items: rows.jsonl
nodes: [{name: answer, role: a, prompt: "{q}"}]
rewards: [{score: f1, field: answer, gold: q}]
"""


def complaint(make, *arguments, **settings):
    with pytest.raises(ColearnError) as caught:
        make(*arguments, **settings)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (DEEP, "is no JSON"),
        ('{"a": ' * 65 + "1" + "}" * 65, "holds more than 64 lists and objects within each other"),
        ('{"question": "\\ud800"}', "holds half of a surrogate pair"),
        ("9" * 5000, "is no JSON"),
        ("{", "is no JSON"),
    ],
    ids=["deep", "too deep to be kept", "half a pair", "digits", "cut"],
)
def test_a_line_that_cannot_be_read_is_named_by_every_task_with_data(tmp_path, task, row, wrong):
    file = tmp_path / "mine.jsonl"
    file.write_text(f"\n{row}\n")
    assert complaint(task, data=str(file)).startswith(f"task.data: line 2 of {file} {wrong}")


def test_a_list_that_cannot_be_read_is_named(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(DEEP)
    told = complaint(CoderTester, data=str(file))
    assert told == f"task.data: {file} is no JSON; write a list of objects"


FUNCTION = {"question": "?", "entry_point": "f", "asserts": "assert f(1) == 2"}
PROGRAM = {"question": "?", "inputs": ["1"], "outputs": ["2"]}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (PROGRAM | {"inputs": 5}, "inputs"),
        (PROGRAM | {"inputs": [5]}, "inputs.0"),
        (PROGRAM | {"outputs": None}, "outputs"),
        (PROGRAM | {"outputs": [["1"]]}, "outputs.0"),
        (PROGRAM | {"solutions": 7}, "solutions"),
        (PROGRAM | {"solutions": [7]}, "solutions.0"),
        (PROGRAM | {"name": 7}, "name"),
        (PROGRAM | {"question": 7}, "question"),
        (PROGRAM | {"question": "  "}, "question"),
        (FUNCTION | {"entry_point": 7}, "entry_point"),
        (FUNCTION | {"entry_point": "f("}, "entry_point"),
        (FUNCTION | {"asserts": 7}, "asserts"),
        (FUNCTION | {"asserts": "assert f(" + "(" * 9000}, "tests"),
        (FUNCTION | {"preamble": 7}, "preamble"),
        (FUNCTION | {"preamble": "import ("}, "preamble"),
        ([], "the row"),
        (7, "the row"),
    ],
)
def test_a_row_of_coder_tester_holds_texts_where_they_belong(tmp_path, row, field):
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, [PROGRAM, row])))
    start = f"task.data: line 2 of {file}: {field}: "
    assert complaint(CoderTester, data=str(file)).startswith(start)


@pytest.mark.parametrize(
    ("task", "row"),
    [
        (MathDuo, {"problem": 7, "answer": "7"}),
        (MathDuo, {"problem": "?", "answer": ["7"]}),
        (ParallelRetrieval, {"question": "?", "answers": ["a", 7]}),
        (ParallelRetrieval, {"question": "?", "answers": ["a"], "titles": 7}),
        (ParallelRetrieval, {"question": "?", "answers": ["a"], "titles": [7]}),
        (CoopHumanEval, {"prompt": 7, "entry_point": "f", "test": "assert f()"}),
        (TLDR, {"prompt": 7}),
    ],
)
def test_a_row_with_something_else_than_text_is_named(tmp_path, task, row):
    file = tmp_path / "mine.jsonl"
    file.write_text(f"{json.dumps(row)}\n" * 3)
    assert f"line 1 of {file}" in complaint(task, data=str(file))


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize(
    "text",
    [
        packed(b""),
        packed(b"."),
        packed(b"\x80\x05"),
        packed(b"0."),
        packed(b"h\x07."),
        packed(pickle.dumps("[" * 100_000)),
        packed(pickle.dumps(7)),
        packed(pickle.dumps("7")),
        "no base 64",
        "",
        "7",
        "[" * 100_000,
    ],
    ids=range(12),
)
def test_private_tests_that_cannot_be_read_are_one_line(text):
    told = complaint(private_cases, text, "P/1")
    assert told.startswith("task.data: the private tests of P/1 are unreadable (")


def test_a_row_of_the_hub_that_has_changed_is_named(monkeypatch):
    hub = types.SimpleNamespace(load_dataset=lambda *names, split: [{"problem_id": 1}])
    monkeypatch.setitem(sys.modules, "datasets", hub)
    assert complaint(CoderTester, data="apps") == (
        "task.data: row 1 of metr-evals/apps is not as this data set was (KeyError: "
        "'difficulty'); give the path of a .jsonl file"
    )


def test_a_passage_that_cannot_be_read_is_named(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"title": "T", "text": "x"}\n' + DEEP)
    told = complaint(Folder(str(tmp_path)).passages)
    assert told.startswith(f"task.corpus: line 2 of {file} is no passage")
    file.write_bytes(b"\xff\xfe")
    told = complaint(Folder(str(tmp_path)).passages)
    assert told == f"task.corpus: {file} is no text in UTF-8; save it as that"


def test_houses_that_cannot_be_read_are_one_line(tmp_path):
    file = tmp_path / "houses.json"
    file.write_text(DEEP)
    assert complaint(read_houses, file) == f"task.houses_file: {file} is no JSON; mend it"
    file.write_bytes(b"\xff")
    told = complaint(read_houses, file)
    assert told == f"task.houses_file: {file} is no text in UTF-8; mend it"


def test_items_of_a_declared_graph_are_named_by_line(tmp_path):
    (tmp_path / "graph.yaml").write_text(GRAPH)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"q": "a"}\n' + DEEP)
    told = complaint(DeclaredWorkflow, str(tmp_path / "graph.yaml"))
    assert told == f"task.graph: items: line 2 of {rows} is no JSON; write one object per line"
    rows.write_text('{"q": "a"}\n{"p": "a"}')
    told = complaint(DeclaredWorkflow, str(tmp_path / "graph.yaml"))
    assert told.startswith(f"task.graph: items: line 2 of {rows} has other keys than the first")


def test_json_may_be_as_deep_as_it_is_said():
    assert read_json("[" * 64 + "]" * 64)
    with pytest.raises(ValueError, match="holds more than 64 lists"):
        read_json("[" * 65 + "]" * 65)


@pytest.mark.parametrize("gold", [7, [], [7], None, {"a": "b"}])
def test_a_gold_answer_of_a_declared_graph_is_text(tmp_path, gold):
    (tmp_path / "graph.yaml").write_text(GRAPH)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"q": gold}))
    told = complaint(DeclaredWorkflow, str(tmp_path / "graph.yaml"))
    assert told.startswith(f"task.graph: items: line 1 of {rows}: 'q' is no gold answer")
