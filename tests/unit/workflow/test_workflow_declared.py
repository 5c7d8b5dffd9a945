"""A declared graph is the same task as the program, and what is wrong with it is reported first."""

from __future__ import annotations

import json

import numpy as np
import pytest

from colearn.config import build_task, load_config
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.programs.workflow import DeclaredWorkflow

RNG = np.random.default_rng(0)
GRAPH = """
items: questions.jsonl
tools: [look]
nodes:
  - {name: query, role: rewriter, prompt: "words for {question}"}
  - {name: found, tool: look, arguments: {query: "{query}"}}
  - {name: answer, role: answerer, prompt: "{found} {question}"}
  - {name: again, when: {field: answer, contains: unknown}, next: query, at_most: 1}
rewards:
  - {score: f1, field: answer, gold: answers}
  - {score: em, field: answer, gold: answers, to: answerer, weight: 0.5}
"""


async def look(query: str) -> str:
    """What is there."""
    return f"[{query}]"


def made(tmp_path, graph: str = GRAPH) -> DeclaredWorkflow:
    rows = [{"question": f"q{n}", "answers": [f"a{n}"]} for n in range(5)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "graph.yaml").write_text(graph)
    return DeclaredWorkflow(str(tmp_path / "graph.yaml"), tools={"look": look})


def test_a_declared_graph_is_played_node_by_node(tmp_path):
    task = made(tmp_path)
    assert (task.agents, task.horizon) == (("rewriter", "answerer"), 4)
    state = task.reset(task.items("train")[1], RNG)
    assert task.observe(state, "rewriter").text == "words for q1"
    state = task.step(state, {"rewriter": "one"}, RNG).state
    assert task.observe(state, "answerer").text == "[one] q1"
    assert task.observe(state, "answerer").made_from == ((0, "rewriter"),)
    last = task.step(state, {"answerer": "a1"}, RNG)
    assert (last.done, last.reward, last.local_rewards) == (True, 1.0, {"answerer": 0.5})
    assert task.metrics(last.state) == {"f1": 1.0, "em": 1.0}


def test_rows_that_differ_in_what_no_node_reads_are_on_one_side(tmp_path):
    made(tmp_path)
    rows = [{"id": n, "question": f"q{n % 6}", "answers": ["a"]} for n in range(30)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = DeclaredWorkflow(str(tmp_path / "graph.yaml"), tools={"look": look})
    sides = [{row["question"] for row in task.items(split)} for split in ("train", "test")]
    assert len(sides[0]) + len(sides[1]) == 6 and not sides[0] & sides[1]


def test_a_loop_is_taken_as_often_as_its_bound_allows(tmp_path):
    task = made(tmp_path)
    state = task.reset(task.items("train")[0], RNG)
    done = []
    for said in ({"rewriter": "x"}, {"answerer": "unknown"}) * 2:
        outcome = task.step(state, said, RNG)
        done.append(outcome.done)
        state = outcome.state
    assert done == [False, False, False, True]


def test_scores_of_two_fields_are_two_metrics(tmp_path):
    query = "{score: f1, field: query, gold: answers, to: rewriter}"
    task = made(tmp_path, GRAPH + f"  - {query}\n")
    assert task.measures == ("f1", "em", "f1_query_answers")
    state = task.reset(task.items("train")[1], RNG)
    for said in ({"rewriter": "a9"}, {"answerer": "a1"}):
        state = task.step(state, said, RNG).state
    assert task.metrics(state) == {"f1": 1.0, "em": 1.0, "f1_query_answers": 0.0}


def test_a_reward_to_a_role_that_was_not_needed_is_paid_to_nobody(tmp_path):
    """The checker is skipped where the answer has no doubt, and else paid for the answer."""
    graph = """
items: questions.jsonl
nodes:
  - {name: answer, role: answerer, prompt: "{question}"}
  - {name: sure, when: {field: answer, equals: a0}, next: end}
  - {name: check, role: checker, prompt: "{answer}"}
rewards: [{score: em, field: answer, gold: answers, to: checker}]
"""
    task = made(tmp_path, graph)
    start = task.reset(task.items("train")[0], RNG)
    skipped = task.step(start, {"answerer": "a0"}, RNG)
    assert (skipped.done, skipped.local_rewards) == (True, {})
    assert task.metrics(skipped.state) == {"em": 1.0}
    asked = task.step(start, {"answerer": "a0?"}, RNG).state
    assert task.step(asked, {"checker": "no"}, RNG).local_rewards == {"checker": 1.0}


def test_it_keeps_the_contract(tmp_path):
    check_task(made(tmp_path), seeds=(0,), episodes=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", at_most: 1", "", "'again' jumps back to 'query' without a bound; set at_most"),
        ("{found} {question}", "{fund} {question}", "'answer' reads 'fund', .* mean 'found'"),
        (
            'prompt: "words for {question}"}',
            'prompt: "x", next: answer}',
            "nothing leads to node 'found'",
        ),
        ("next: query", "next: quarry", "no node 'quarry'; did you mean 'query'"),
        ("tool: look", "tool: lock", "no tool 'lock'; did you mean 'look'"),
        ("name: found", "name: query", "two nodes have the same name"),
        ("role: answerer, ", "", "'answer' does nothing"),
        ("gold: answers, to: answerer", "gold: answers, to: nobody", "'nobody', which is no role"),
        ("gold: answers}", "gold: answer}", "gold 'answer' is the result of a node"),
        ("gold: answers}", "gold: right}", "a reward reads 'right', which nothing sets"),
        ("field: answer, gold: answers}", "field: reply, gold: answers}", "a reward reads 'reply'"),
        ("contains: unknown", "holds: unknown", r"nodes\.3\.when\.holds: Extra inputs"),
        (", contains: unknown", "", "when needs either contains or equals"),
        ("tools: [look]", "tools: [look, see]", "tool 'see' is not given"),
        ("items: questions.jsonl", "items: none.jsonl", "items: cannot read"),
        ("words for {question}", "words for {question", r"nodes\.0\.prompt: .*for braces that"),
        ("words for {question}", "words for question}", r"nodes\.0\.prompt: .*for braces that"),
        ("words for {question}", "{question!z}", r"nodes\.0\.prompt: .*write \{name\}"),
        ("words for {question}", "{question:99999999999}", r"nodes\.0\.prompt: .*is no field"),
        ("words for {question}", "{question.__class__}", r"nodes\.0\.prompt: .*is no field"),
        ("weight: 0.5", "weight: .nan", r"rewards\.1\.weight: Input should be a f"),
        ("role: answerer", "role: end", r"nodes\.\d\.role: 'end' cannot name a role"),
        (
            "role: answerer",
            "role: ../../..",
            r"nodes\.\d\.role: '\.\./\.\./\.\.' cannot name a role",
        ),
        ("role: answerer", "role: ask", r"nodes\.\d\.role: 'ask' cannot name a role or tool"),
        ("tools: [look]", "tools: [ask]", r"tools\.0: 'ask' cannot name a role or tool"),
        ("at_most: 1", "at_most: 100000", r"at_most: Input should be less than or equal to 1000"),
    ],
)
def test_what_is_wrong_with_a_graph_is_one_line(tmp_path, old, new, message):
    assert old in GRAPH
    with pytest.raises(ConfigError, match=message) as error:
        made(tmp_path, GRAPH.replace(old, new, 1))
    assert "\n" not in str(error.value)


def test_one_row_cannot_be_both_splits(tmp_path):
    made(tmp_path)
    (tmp_path / "questions.jsonl").write_text('{"question": "q", "answers": ["a"]}')
    with pytest.raises(ConfigError, match="has 1 rows; write two or more"):
        DeclaredWorkflow(str(tmp_path / "graph.yaml"), tools={"look": look})


def test_a_field_that_one_way_leaves_unset_is_found(tmp_path):
    graph = GRAPH.replace(
        "  - {name: found",
        "  - {name: skip, when: {field: query, equals: none}, next: answer}\n  - {name: found",
    )
    with pytest.raises(ConfigError, match="reads 'found', which is not set on every way"):
        made(tmp_path, graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GRAPH + "tools: []\n", "the key 'tools' appears twice"),
        ("roles: [", "is not YAML"),
        ("[" * 5000, "more than 100 brackets inside each other"),
    ],
)
def test_a_graph_is_read_as_strictly_as_a_config(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        made(tmp_path, text)
    assert str(caught.value).startswith("task.graph: ") and "\n" not in str(caught.value)


def test_the_path_of_a_graph_is_the_name_of_its_task(tmp_path):
    made(tmp_path)
    (tmp_path / "tools_of_the_graph.py").write_text(
        "async def look(query: str) -> str:\n    return f'[{query}]'\n"
    )
    path = str(tmp_path / "graph.yaml")
    config = load_config({"task": path, "models": {}}, ["task.tools.look=tools_of_the_graph:look"])
    assert config.task.model_dump() == {
        "name": "workflow",
        "graph": path,
        "tools": {"look": "tools_of_the_graph:look"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        check_task(build_task(config))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def look(query): pass", "task.tools.look: must be `async def look"),
        ("async def other(query): pass\nlook = other", "task.tools.look: must be `async def look"),
        ("look = 7", "task.tools.look: 'wrong_tools.*:look' is a int"),
        ("", "task.tools.look: module 'wrong_tools.*' has no 'look'"),
        ("look = 1 / 0", "task.tools.look: importing .* raised ZeroDivisionError: .*, line 1"),
    ],
)
def test_a_tool_that_cannot_be_called_is_one_line(tmp_path, monkeypatch, code, told):
    made(tmp_path)
    name = f"wrong_tools_{len(code)}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=told):
        DeclaredWorkflow(str(tmp_path / "graph.yaml"), tools={"look": f"{name}:look"})


def test_a_graph_in_place_of_a_config_is_told_so(tmp_path):
    made(tmp_path)
    with pytest.raises(ConfigError, match=r"is a workflow's graph; name it as the task of a conf"):
        load_config(tmp_path / "graph.yaml")
    with pytest.raises(ConfigError, match="task: name and graph both name a file"):
        load_config({"task": {"name": "a.yaml", "graph": "b.yaml"}, "models": {}})
