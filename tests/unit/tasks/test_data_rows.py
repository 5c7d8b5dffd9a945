"""A row that a task cannot read is one line with the file and its line, whatever it holds."""

from __future__ import annotations

import base64
import csv
import json
import pickle
import re
import sys
import types
import zlib

import pytest

from colearn.errors import ColearnError, ConfigError
from colearn.programs.workflow.declared import DeclaredWorkflow
from colearn.programs.workflow.qa import Folder
from colearn.tasks.coder_tester import CoderTester
from colearn.tasks.coder_tester.hub import private_cases
from colearn.tasks.coop_humaneval import CoopHumanEval
from colearn.tasks.debate import Debate
from colearn.tasks.house_build.file import read_houses
from colearn.tasks.math_duo import MathDuo
from colearn.tasks.rows import file_rows
from colearn.tasks.search import ParallelRetrieval
from colearn.tasks.writing.arxiv import ArXiv
from colearn.tasks.writing.tldr import TLDR
from colearn.text.json_value import read_json

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
def test_a_file_that_is_not_utf8_is_wrong_and_not_merely_elsewhere(tmp_path, task):
    """A dry run replaces data that are not on this machine by the default data."""
    file = tmp_path / "mine.jsonl"
    file.write_bytes('{"question": "é"}'.encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"task\.data: {re.escape(str(file))} is not UTF-8"):
        task(data=str(file)).items("train")


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
def test_a_line_that_cannot_be_read_is_named(tmp_path, row, wrong):
    file = tmp_path / "mine.jsonl"
    file.write_text(f"\n{row}\n")
    told = complaint(file_rows, file, "packaged")
    assert told.startswith(f"task.data: line 2 of {file} {wrong}")


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
        (PROGRAM | {"outputs": [["1"]]}, "outputs.0"),
        (PROGRAM | {"solutions": [7]}, "solutions.0"),
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
        packed(b"h\x07."),
        packed(pickle.dumps("[" * 100_000)),
        packed(pickle.dumps("7")),
        "no base 64",
        "7",
    ],
    ids=range(6),
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
    assert complaint(read_houses, file) == f"task.houses_file: {file} is no JSON; fix it"
    file.write_bytes(b"\xff")
    told = complaint(read_houses, file)
    assert told == f"task.houses_file: {file} is no text in UTF-8; fix it"


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


@pytest.mark.parametrize("gold", [7, [], [7], ["a", ""]])
def test_a_gold_answer_of_a_declared_graph_is_text(tmp_path, gold):
    (tmp_path / "graph.yaml").write_text(GRAPH)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"q": gold}))
    told = complaint(DeclaredWorkflow, str(tmp_path / "graph.yaml"))
    assert told.startswith(f"task.graph: items: line 1 of {rows}: 'q' is not a gold answer")


@pytest.mark.parametrize("answers", [[""], ["a", " \n"]])
def test_a_gold_answer_that_no_agent_can_give_is_named(tmp_path, answers):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": "q", "answers": answers}))
    told = complaint(ParallelRetrieval, data=str(rows), corpus=str(tmp_path))
    assert told == (
        f"task.data: line 1 of {rows} has an empty answer, which no agent can give; remove it"
    )


ROWS = {
    CoderTester: ([PROGRAM | {"question": f"q {k}", "name": f"n{k}"} for k in range(5)], {}),
    CoopHumanEval: (
        [
            {"prompt": f'def f{k}():\n    """x, y"""', "entry_point": f"f{k}", "test": "assert f()"}
            for k in range(5)
        ],
        {},
    ),
    MathDuo: ([{"problem": f"{k} + 1, please?", "answer": k + 1} for k in range(12)], {}),
    ParallelRetrieval: (
        [{"question": f"who, {k}?", "answers": ["a, b", f"{k}"]} for k in range(5)],
        {"corpus": "."},
    ),
    TLDR: ([{"prompt": f'a "post", {k}\nin two lines'} for k in range(12)], {}),
    Debate: ([{"problem": f"{k} + 1?", "answer": str(k + 1)} for k in range(12)], {}),
}


@pytest.mark.parametrize("task", ROWS, ids=lambda task: task.__name__)
@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_a_file_of_any_form_gives_the_same_items(tmp_path, task, suffix):
    (tmp_path / "a.txt").write_text("a passage")
    rows, settings = ROWS[task]
    settings = {key: str(tmp_path) for key in settings}
    lines, other = tmp_path / "rows.jsonl", tmp_path / f"other.{suffix}"
    lines.write_text("\n".join(map(json.dumps, rows)))
    if suffix == "csv":
        with other.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            plain = (
                {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()}
                for row in rows
            )
            writer.writerows(plain)
    else:
        other.write_text(json.dumps(rows) if suffix == "json" else lines.read_text())
    a, b = (task(data=str(path), **settings) for path in (lines, other))
    for split in ("train", "test"):
        assert len(a.items(split)) > 0
        assert list(map(_nameless, a.items(split))) == list(map(_nameless, b.items(split)))


def _nameless(item):
    """Without the location in a file, by which a row without a name is named."""
    text = repr(item)
    return re.sub(r"(line|row) \d+ of \S+\.\w+", "row", text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("problem,answer\n1,2,3\n", "has 3 fields in line 2 and 2 in its header"),
        ('problem,answer\n"1,2\n', "is not valid CSV in line 2 "),
        ("problem,problem\n1,2\n", "has two columns 'problem'"),
        ("problem,\n1,2\n", "has a column without a name"),
        ('problem,answer\n"1"x,2\n', "is not valid CSV in line 2 "),
    ],
)
def test_a_table_that_cannot_be_read_is_named(tmp_path, text, wrong):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    assert complaint(MathDuo, data=str(file)).startswith(f"task.data: {file} {wrong}")


def test_a_graphs_items_may_be_a_table(tmp_path):
    (tmp_path / "graph.yaml").write_text(GRAPH.replace("rows.jsonl", "rows.csv"))
    (tmp_path / "rows.csv").write_text('q\n"a, b"\n"[""c"", ""d""]"\n')
    task = DeclaredWorkflow(str(tmp_path / "graph.yaml"))
    assert [*task.items("train"), *task.items("test")] == [{"q": "a, b"}, {"q": ["c", "d"]}]
    (tmp_path / "rows.csv").write_text("q,q\n")
    told = complaint(DeclaredWorkflow, str(tmp_path / "graph.yaml"))
    assert "rows.csv has two columns 'q'" in told
