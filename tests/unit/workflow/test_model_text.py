"""Whatever a model writes, what reads it goes on: byte noise, depth, halves of surrogate pairs.

A role is answered with text, a task goes on playing, a picture stays a picture, a line a line.
"""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import dataclass
from html import escape
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colearn.contract import DecPOMDP
from colearn.contract.task_results import validate_observation
from colearn.deploy.client.protocol.tool_call_text import (
    message,
    read_calls,
    write_call,
    write_response,
)
from colearn.errors import MissingExtra, TaskError
from colearn.programs.workflow import Tool, ToolError, Workflow
from colearn.programs.workflow.declared import DeclaredWorkflow
from colearn.programs.workflow.role_turn import find_call
from colearn.programs.workflow.tool import plain
from colearn.registry import task_class
from colearn.tasks.answers import code_block, final_answer, plain_value
from colearn.tasks.math_duo.checker import plain_number
from colearn.text.json_value import DEEPEST
from colearn.text.printable import is_unicode, printable
from tests.helpers.complete_tasks import COMPLETE_TASKS

RNG = np.random.default_rng(0)
HALF = "\ud800"
MARKS = (
    *("<tool_call>", "</tool_call>", "```python\n", "\n```", "####", "\n#### ", "###", "<answer>"),
    *("</answer>", "**Test Input:**\n", "**Test Output:**\n", "/setblock ", "/fill ", "def aux("),
    *('{"name": "take", "arguments": ', '{"given": ', "}", "}}", "{given}", "{0.__class__}", "%s"),
    *("\\ud800", "\\u0000", '"', "'", "\\", "\n", "\x00", "\x1a", "\x1b[2J", "\x85", "\u2028"),
    *("٣", "½", "1e999", "NaN", "-", "9" * 5000, "U", "[", "]", "]]>", "-->", "&", "<g>", "\ufffe"),
)
OPENING = ("[", '{"a":', "(", "-", "not ", "f(", "<tool_call>", "lambda:", "{{", "1,[", "\\boxed{")

NOISE = st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "replace"))
LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DEPTH = st.builds(str.__mul__, st.sampled_from(OPENING), st.sampled_from([1, 40, 300, 3000]))
PIECES = st.lists(st.one_of(st.sampled_from(MARKS), DEPTH, NOISE, LETTERS), max_size=8)
UNICODE = PIECES.map("".join)
"""What a tokenizer decodes: any Unicode, which may spell anything else."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(st.characters(codec=None, exclude_categories=[]), max_size=8),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(max_size=4), inside),
    max_leaves=12,
)


@st.composite
def _call(draw: Any) -> str:
    """A tool call as far as its form goes."""
    deep = draw(st.sampled_from([0, 1, DEEPEST, 200, 900, 5000]))
    given = "[" * deep + json.dumps(draw(JSON)) + "]" * deep
    name = draw(st.sampled_from(["take", "give", "fail", "no such tool", "\ud800"]))
    key = json.dumps(draw(st.sampled_from(["given", "number", "\udfff", "self"])))
    return f'<tool_call>{{"name": {json.dumps(name)}, "arguments": {{{key}: {given}}}}}'


CALLS = st.one_of(_call(), UNICODE.map("<tool_call>".__add__), UNICODE)
ANYTHING = UNICODE | st.builds(lambda one, other: one + HALF + other, UNICODE, UNICODE)
"""Also what no tokenizer decodes, but a program may print or an endpoint send."""
HARD = settings(max_examples=25, deadline=None, derandomize=True)
QUICK = settings(max_examples=4, deadline=None, derandomize=True)


async def take(given: Any) -> Any:
    """Gives what it is given."""
    return given


async def give(given: Any) -> Any:
    """Gives what no text can hold."""
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    return {"given": HALF, "deep": deep}


async def fail(given: Any) -> Any:
    """Fails in words that cannot be written."""
    raise ValueError(f"no {HALF}{given}")


@dataclass(frozen=True)
class Item:
    text: str = "?"


class Told(Workflow[Item]):
    """A role with tools; another reads what it said."""

    agents = ("a", "b")
    horizon = 8
    measures = ()
    tools = (Tool(take), Tool(give), Tool(fail))

    def items(self, split):
        return [Item()]

    async def run(self, team, item):
        said = await team.a("?", tools=["take", "give", "fail"])
        await team.b(f"a said: {said} {await team.take(str(said))}")


def play(task: DecPOMDP[Any, Any], said: str) -> Any:
    """All agents say the same until the end; what is shown is held to the contract."""
    state = task.reset(task.items("train")[0], RNG)
    for _ in range(task.horizon):
        seen = {agent: task.observe(state, agent) for agent in task.agents}
        acting = [agent for agent, shown in seen.items() if validate_observation(shown, agent)]
        outcome = task.step(state, dict.fromkeys(acting, said), RNG)
        state = outcome.state
        if outcome.done:
            break
    return state


def looked_at(task: DecPOMDP[Any, Any], state: Any) -> None:
    """A reader's views of a state: text, a picture, a pickle."""
    task.render(state)
    picture = task.picture(state)
    assert picture is None or json.dumps(picture.plain())
    task.global_info(state)
    assert pickle.loads(pickle.dumps(state)) is not None


@HARD
@given(CALLS)
def test_a_role_is_told_what_came_of_any_tool_call_and_the_run_goes_on(said):
    looked_at(Told(), play(Told(), said))


@HARD
@given(ANYTHING)
def test_a_tool_call_is_read_or_refused_in_text(said):
    found = find_call(said)
    assert found is None or is_unicode(found if isinstance(found, ToolError) else repr(found))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("[" * 1000, "is no JSON"),
        ("[" * 200_000, "is no JSON"),
        ('{"name": ' + "9" * 5000, "is no JSON"),
        (
            '{"name": "take", "arguments": {"given": ' + "[" * 63 + "]" * 63 + "}}",
            "holds more than 64 lists and objects within each other",
        ),
        (
            '{"name": "take", "arguments": {"given": "\\ud800"}}',
            "holds half of a surrogate pair, which is no text",
        ),
        (
            '{"name": "take", "arguments": {"\\udfff": 1}}',
            "holds half of a surrogate pair, which is no text",
        ),
    ],
    ids=["brackets", "many brackets", "digits", "depth", "half a pair", "half a pair's name"],
)
def test_a_call_that_cannot_be_read_is_a_tool_error(said, expected):
    found = find_call(f"<tool_call>{said}")
    assert found == f"a tool call is JSON with a name and arguments; this {expected}"
    assert isinstance(found, ToolError)


def test_a_call_may_be_as_deep_as_it_is_said():
    deep = "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2)
    found = find_call(f'<tool_call>{{"name": "take", "arguments": {{"given": {deep}}}}}')
    assert isinstance(found, tuple)


@pytest.mark.parametrize("tool", [take, give, fail])
def test_what_a_tool_gives_or_says_can_always_be_shown(tool):
    result = asyncio.run(Tool(tool)(json.dumps({"given": HALF})))
    assert isinstance(result, ToolError) and is_unicode(write_response(plain(result)))


def test_a_name_of_a_tool_is_shown_in_one_line():
    task = Told()
    state = task.reset(Item(), RNG)
    call = json.dumps({"name": "x\n" * 9000, "arguments": {}})
    shown = task.observe(task.step(state, {"a": f"<tool_call>{call}"}, RNG).state, "a").text
    assert "\n" not in shown and len(shown) < 500


@pytest.mark.parametrize("several", [True, False])
@HARD
@given(said=st.lists(CALLS, max_size=3).map("</tool_call>".join))
def test_tool_calls_that_clients_are_told_of_can_be_written_and_read_again(said, several):
    outside, calls = read_calls(said, ["take", "give"], several=several)
    told = json.dumps(message(outside, calls), ensure_ascii=False)
    assert is_unicode(told) and {name for name, _ in calls} <= {"take", "give"}
    for name, arguments in calls:
        again = read_calls(write_call(name, arguments), [name], several=False)
        assert repr(again) == repr(("", [(name, dict(sorted(arguments.items())))]))


@HARD
@given(ANYTHING)
def test_answers_are_read_or_have_no_format(said):
    for read in (final_answer, code_block, plain_value, plain_number):
        read(said)


@HARD
@given(ANYTHING)
def test_what_was_said_can_stand_in_a_picture(said):
    ElementTree.fromstring(f"<text>{escape(printable(said))}</text>")


def _as_far_as_shown(task: DecPOMDP[Any, Any], said: str) -> Any:
    """A play; one in which half of a pair was said may end where it is to be shown again."""
    try:
        return play(task, said)
    except TaskError as error:
        assert not is_unicode(said) and "surrogate" in str(error)
        return task.reset(task.items("train")[0], RNG)


@pytest.mark.parametrize("name", COMPLETE_TASKS)
def test_a_shipped_task_bears_whatever_is_said_in_it(name):
    try:
        task = task_class(name)()
    except MissingExtra as error:
        pytest.skip(str(error))

    @QUICK
    @given(ANYTHING)
    def bears(said):
        looked_at(task, _as_far_as_shown(task, said))

    bears()


GRAPH = """
items: questions.jsonl
tools: [take]
nodes:
  - {name: query, role: a, prompt: "Words for: {question}"}
  - {name: found, tool: take, arguments: {given: "{query}"}}
  - {name: answer, role: b, prompt: "{found} {query}: {question}"}
  - {name: again, when: {field: answer, contains: unknown}, next: query, at_most: 2}
rewards: [{score: f1, field: answer, gold: answers}]
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    (folder / "questions.jsonl").write_text('{"question": "q {0} {x}", "answers": ["a"]}\n' * 5)
    (folder / "graph.yaml").write_text(GRAPH)
    return DeclaredWorkflow(str(folder / "graph.yaml"), tools={"take": take})


def test_a_declared_graph_fills_its_prompts_with_whatever_was_said(graph):
    @HARD
    @given(ANYTHING)
    def fills(said):
        looked_at(graph, _as_far_as_shown(graph, said))

    fills()


def test_half_of_a_surrogate_pair_in_an_observation_is_the_tasks_mistake():
    with pytest.raises(TaskError, match=r"^task.observe: agent 'a' was given half of a surrogate"):
        validate_observation(HALF, "a")


# --- a key twice, and numbers that JSON has not ---


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('{"name": "close", "name": "take", "arguments": {}}', "'name' twice"),
        ('{"name": "take", "arguments": {"n": 1, "n": 2}}', "'n' twice"),
        ('{"name": "take", "arguments": {"n": {"a": 1, "a": 1}}}', "'a' twice"),
        ('{"name": "take", "arguments": {"n": NaN}}', "NaN or a number beyond"),
        ('{"name": "take", "arguments": {"n": 1e999}}', "NaN or a number beyond"),
    ],
)
def test_a_call_of_which_a_part_would_be_dropped_is_none(call: str, said: str) -> None:
    """json.loads keeps the last of two equal keys, and reads what JSON's grammar does not have."""
    text = f"<tool_call>{call}</tool_call>"
    found = find_call(text)
    assert isinstance(found, ToolError) and said in found
    assert read_calls(text, ["take", "close"], several=True) == (text, [])
