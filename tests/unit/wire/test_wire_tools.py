"""Function calls in text, as training and serving read and write them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from colearn.contract import SampledAction
from colearn.contract.types import Action, Observation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import parse
from colearn.deploy.client.protocol.tool_call_text import announce, message, read_calls, write_call
from colearn.deploy.serve.completion import ChatAnswer
from colearn.programs.gateway.answer import completion
from colearn.programs.gateway.contexts import Context
from colearn.programs.gateway.state import GatewayCall

LOOK = write_call("look", {"b": 2, "a": 1})
OFFER = [{"type": "function", "function": {"name": "look", "description": "Look."}}]


def test_a_call_is_written_alike_whatever_the_order_of_its_arguments():
    assert LOOK == '<tool_call>{"name": "look", "arguments": {"a": 1, "b": 2}}</tool_call>'
    assert write_call("look", {"a": 1, "b": 2}) == LOOK


def test_calls_are_read_and_the_rest_is_text():
    calls = read_calls(f"so {LOOK}{LOOK} on", {"look"}, several=True)
    assert calls == ("so  on", [("look", {"a": 1, "b": 2})] * 2)


def test_one_call_is_read_where_one_is_wanted():
    assert read_calls(f"so {LOOK}{LOOK}", {"look"}, several=False) == (
        "so",
        [("look", {"a": 1, "b": 2})],
    )


def test_what_follows_the_one_call_is_dropped():
    assert read_calls(f"so {LOOK} on", {"look"}, several=False)[0] == "so"


def test_a_call_may_lack_its_closing_mark_and_hold_lines():
    text = 'so <tool_call>{"name": "look",\n"arguments": {}}'
    assert read_calls(text, {"look"}, several=True) == ("so", [("look", {})])


def test_a_call_before_one_that_is_not_offered_is_read():
    leap = LOOK.replace("look", "leap")
    assert read_calls(f"{leap}{LOOK}", {"look"}, several=False) == (
        leap,
        [("look", {"a": 1, "b": 2})],
    )


def test_a_text_without_calls_keeps_its_spaces():
    assert read_calls(" so ", {"look"}, several=True) == (" so ", [])


def test_letters_of_any_language_are_written_as_they_are():
    assert "é" in write_call("look", {"a": "é"})
    assert "é" in announce([{"name": "look", "description": "é"}])
    (call,) = message("", [("look", {"a": "é"})])["tool_calls"]
    assert call["function"]["arguments"] == '{"a": "é"}'


def test_a_message_holds_its_text_and_calls_of_their_own_names():
    made = message("so", [("look", {}), ("look", {})])
    assert (made["role"], made["content"], made["refusal"]) == ("assistant", "so", None)
    first, second = made["tool_calls"]
    assert first["id"] != second["id"] and first["type"] == "function"
    assert "tool_calls" not in message("", []) and message("", [])["content"] == ""


@pytest.mark.parametrize(
    "text", [LOOK.replace("look", "leap"), "<tool_call>{]</tool_call>", "<tool_call>7</tool_call>"]
)
def test_what_is_no_call_of_an_offered_function_stays_text(text):
    assert read_calls(text, {"look"}, several=True) == (text, [])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_choice_that_would_constrain_the_answer_is_refused(choice):
    body = {"messages": [{"role": "user", "content": "u"}], "tools": OFFER, "tool_choice": choice}
    with pytest.raises(ServeError, match="'tool_choice': answers cannot be constrained"):
        parse(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("parallel", "finish", "reason"),
    [
        (None, "length", "length"),
        (True, "length", "length"),
        (False, "length", "tool_calls"),  # what is cut is no part of the answer
        (None, "stop", "tool_calls"),
    ],
)
def test_calls_do_not_hide_that_the_limit_cut_a_further_one(parallel, finish, reason):
    text = LOOK + '<tool_call>{"name": "loo'
    choice = SimpleNamespace(text=text, tokens=[1], logprobs=[0.0], top=[], finish=finish, stop="")
    job = SimpleNamespace(choices=[choice], request=SimpleNamespace(history=[0]), prefilled=1)
    body = {"messages": [{"role": "user", "content": "u"}], "tools": OFFER}
    asked = parse(json.dumps({**body, "parallel_tool_calls": parallel}).encode())
    answer = ChatAnswer("a", job, None, asked)
    (whole,) = answer.whole()["choices"]
    assert whole["finish_reason"] == reason and len(whole["message"]["tool_calls"]) == 1
    assert answer.in_one_piece  # a stream of it is written from the whole answer
    call = GatewayCall(
        number=0,
        name="a",
        text="u",
        prompt=Observation("u"),
        request="chatcmpl-0",
        offered=("look",),
        several=parallel is not False,
        context=Context(None, (("user", "u"),)),
        reason="first",
    )
    action = Action(text, (1,), (0.0,), finish=finish)
    (told,) = completion(call, SampledAction(action))[0]["choices"]
    assert told["finish_reason"] == reason
