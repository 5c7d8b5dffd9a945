"""Arguments of tools: their names are data, their values arrive as they were given."""

from __future__ import annotations

import asyncio
import json
import keyword
import os
import subprocess
import sys
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from colearn.errors import ConfigError
from colearn.programs.workflow import Tool, ToolError, Workflow
from colearn.programs.workflow.tool import plain
from colearn.text.plain_data import in_order

RESERVED = (
    *(
        "_id",
        "__top",
        "model_config",
        "model_fields",
        "model_dump",
        "self",
        "cls",
        "schema",
        "json",
    ),
    *("copy", "dict", "tool", "name", "args", "arguments", "function", "validate", "construct"),
    *(name for name in dir(BaseModel) if name.isidentifier()),
)
IDENTIFIERS = st.one_of(
    st.sampled_from(RESERVED),
    st.text("abz_09", min_size=1, max_size=5).filter(
        lambda name: name.isidentifier() and not keyword.iskeyword(name)
    ),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | IDENTIFIERS
QUICK = settings(max_examples=40, deadline=None, derandomize=True)


def call(tool: Tool, /, *args: Any, **arguments: Any) -> Any:
    bound = tool.bind(args, arguments)
    assert not isinstance(bound, ToolError), bound
    return asyncio.run(tool(tool.spell(bound)))


def function_of(names: list[str], signature: str) -> Any:
    space: dict[str, Any] = {}
    body = ", ".join(f"{name!r}: {name}" for name in names)
    exec(f"async def given({signature}):\n    return {{{body}}}", space)
    return space["given"]


@QUICK
@given(sent=st.dictionaries(IDENTIFIERS, st.integers(), min_size=1, max_size=4))
def test_a_function_receives_its_arguments_under_any_names(sent):
    tool = Tool(function_of(list(sent), ", ".join(f"{name}: int" for name in sent)))
    assert call(tool, **sent) == sent
    assert call(tool, *sent.values()) == sent
    schema = tool.schema["inputSchema"]
    assert list(schema["properties"]) == list(sent) == schema["required"]
    first, *others = sent
    missing = tool.bind((), {name: sent[name] for name in others})
    assert missing == f"missing a required argument: {first!r}"


@QUICK
@given(sent=st.dictionaries(IDENTIFIERS, st.integers(), min_size=1, max_size=4))
def test_a_role_calls_a_tool_whose_arguments_have_any_names(sent):
    tool = Tool(function_of(list(sent), ", ".join(sent)))

    class Asked(Workflow[str]):
        agents, horizon, measures = ("a",), 2, ()
        tools = (tool,)

        def items(self, split):
            return ["x"]

        async def run(self, team, item):
            assert await team.given(**sent) == sent == await team.use("given", **sent)
            await team.a("?", tools=["given"])

    task, rng = Asked(), np.random.default_rng(0)
    said = json.dumps({"name": "given", "arguments": sent})
    state = task.reset("x", rng)
    state = task.step(state, {"a": f"<tool_call>{said}</tool_call>"}, rng).state
    shown = task.observe(state, "a").text
    inside = shown.removeprefix("<tool_response>").removesuffix("</tool_response>")
    assert json.loads(inside) == sent


def with_schema(schema: dict[str, Any]) -> Tool:
    async def given(__self: Any = None, /, **arguments: Any) -> str:
        return json.dumps(arguments)

    given.input_schema = schema  # type: ignore[attr-defined]
    return Tool(given)


@QUICK
@given(sent=st.dictionaries(NAMES, st.none() | st.integers() | st.text("ab"), max_size=5))
def test_a_tool_with_a_schema_receives_exactly_what_was_sent(sent):
    needed = with_schema(
        {"type": "object", "properties": {name: {} for name in sent}, "required": list(sent)}
    )
    for tool in (needed, with_schema({"type": "object"})):
        assert json.loads(call(tool, **sent)) == sent
    assert json.loads(call(needed, *sent.values())) == sent


TIMES = {
    "type": "object",
    "properties": {
        "times": {"type": "integer", "minimum": 1, "default": 2},
        "text": {"type": ["string", "null"]},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"text": "a", "times": 0}, "times: 0 is less than the minimum of 1"),
        ({"text": "a", "times": "2"}, "times: '2' is not of type 'integer'"),
        ({"text": "a", "times": None}, "times: None is not of type 'integer'"),
        ({"times": 1}, "'text' is a required property"),
        ({"text": "a", "tiems": 1}, "got an unexpected keyword argument 'tiems'"),
        ({"text": "a\ud800"}, "the arguments have half of a surrogate pair, which is no text"),
        (
            {"text": "a", "times": float("nan")},
            "the arguments have an infinity or NaN, which JSON does not have",
        ),
    ],
)
def test_what_a_schema_does_not_allow_is_told_and_not_sent(arguments, fault):
    assert with_schema(TIMES).bind((), arguments) == fault


def test_a_schema_places_required_arguments_first_and_adds_no_default():
    assert with_schema(TIMES).bind((None,), {}) == {"text": None}
    assert with_schema(TIMES).bind(("a", 3), {}) == {"text": "a", "times": 3}
    assert with_schema(TIMES).bind(("a",), {"text": "b"}) == "multiple values for argument 'text'"


@pytest.mark.parametrize("wrong", [{"type": "int"}, {"properties": {"a": {"pattern": "["}}}])
def test_a_schema_that_is_none_is_named(wrong):
    with pytest.raises(ConfigError, match=r"^tools: the arguments of 'given' have no valid JSON"):
        _ = with_schema(wrong).schema


def test_a_schema_reads_nothing_from_an_address():
    tool = with_schema({"$ref": "http://127.0.0.1:9/schema.json"})
    assert tool.bind((), {}).startswith("the tool's schema is incomplete: ")


async def kinds(a: int, b: list[int] = [2], *, c: int = 3, **more: int) -> list[Any]:  # noqa: B006
    """Every kind of parameter that a call can name."""
    return [a, b, c, more]


@pytest.mark.parametrize(
    ("args", "arguments", "received"),
    [
        ((1,), {}, [1, [2], 3, {}]),
        ((), {"a": 1}, [1, [2], 3, {}]),
        ((1, (5,)), {"c": 8, "d": 9}, [1, [5], 8, {"d": 9}]),
        ((), {"a": 1, "more": 4}, [1, [2], 3, {"more": 4}]),
    ],
)
def test_every_kind_of_parameter_is_passed_as_the_signature_says(args, arguments, received):
    assert call(Tool(kinds), *args, **arguments) == received
    bound = Tool(kinds).bind(args, arguments)
    assert call(Tool(kinds), **bound) == call(Tool(kinds), *args, **arguments)


def test_a_value_of_the_wrong_type_is_told_by_its_name():
    assert Tool(kinds).bind((), {"a": 1, "d": "x"}).startswith("d: Input should be a valid integer")
    assert Tool(kinds).bind((), {"a": 1, "b": ["x"]}).startswith("b.0: Input should be")


async def unnamed(a: int, /) -> int:
    return a


async def several(*numbers: int) -> int:
    return sum(numbers)


@pytest.mark.parametrize("function", [unnamed, several])
def test_a_parameter_that_no_call_can_name_is_refused(function):
    line = r"^tools: '\w+' has the parameter '.*', which has no name in a call; let it be"
    with pytest.raises(ConfigError, match=line):
        _ = Tool(function).schema


def test_a_parameter_described_by_pydantic_keeps_default_and_limits():
    async def roll(
        sides: Annotated[int, Field(gt=1, description="of the die")] = Field(default=6),
    ) -> int:
        return sides

    tool = Tool(roll)
    assert call(tool) == 6
    assert tool.bind((1,), {}) == "sides: Input should be greater than 1"
    described = tool.schema["inputSchema"]["properties"]["sides"]
    assert (described["default"], described["description"]) == (6, "of the die")


def test_a_set_is_listed_in_one_order_in_every_process():
    program = (
        "from colearn.text.plain_data import plain_data\n"
        "print(plain_data({'w': ({'fig', 'ash', 'oak', 'elm', 'yew'}, {('b', 1), ('a', 2)})}))"
    )
    orders = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert orders == {b"{'w': [['ash', 'elm', 'fig', 'oak', 'yew'], [['a', 2], ['b', 1]]]}\n"}


WORDS = {"fig", "ash", "oak", "elm", "yew", "box", "may", "bay"}


def test_a_set_is_sorted_as_an_argument_and_as_a_result():
    async def given(words: set[str]) -> Any:
        return words

    assert Tool(given).bind((WORDS,), {}) == {"words": sorted(WORDS)}
    assert json.loads(plain(call(Tool(given), WORDS))) == sorted(WORDS)


def test_elements_of_several_types_have_an_order():
    assert in_order({"b", 2, "a", 10, (frozenset({3, 1}),)}) == [2, 10, "a", "b", ([1, 3],)]


class Found(BaseModel):
    words: set[str]


@dataclass
class Noted:
    words: set[str]


class Pair(NamedTuple):
    words: set[str]


@pytest.mark.parametrize("result", [Found(words=WORDS), Noted(WORDS), {"words": WORDS}])
def test_a_set_inside_of_an_object_is_observed_in_order(result: Any) -> None:
    assert json.loads(plain(result)) == {"words": sorted(WORDS)}
    assert json.loads(plain(defaultdict(set, a=result))) == {"a": {"words": sorted(WORDS)}}
    assert json.loads(plain(deque([Pair(WORDS)]))) == [[sorted(WORDS)]]


def test_a_type_that_cannot_be_read_is_one_line() -> None:
    async def draw(canvas: np.random.Generator) -> str:
        return "x"

    with pytest.raises(ConfigError, match=r"^tools: 'draw' has a parameter whose type cannot be"):
        _ = Tool(draw).schema
