"""Messages of a request as turns, by hand."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from colearn.deploy.client.protocol.conversation import (
    SentConversation,
    entries,
    read_conversation,
)
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import ChatRequest, parse
from colearn.programs.gateway.contexts import Context, read_request

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
WRITTEN = '<tool_call>{"name": "look", "arguments": {"a": 1}}</tool_call>'


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def request(*messages: dict[str, Any], **fields: Any) -> ChatRequest:
    return parse(json.dumps({"messages": messages, **fields}).encode())


def read(*messages: dict[str, Any], **fields: Any) -> SentConversation:
    return read_conversation(request(*messages, **fields))


def refused(*messages: dict[str, Any]) -> tuple[int, str | None, str]:
    """The refusal of an agent that is served, which is that of the gateway, too."""
    with pytest.raises(ServeError) as refusal:
        read(*messages)
    told = refusal.value.status, refusal.value.param, refusal.value.message
    with pytest.raises(ServeError) as refusal:
        read_request(request(*messages), None)
    assert (refusal.value.status, refusal.value.param, refusal.value.message) == told
    return told


def test_every_turn_has_its_own_texts() -> None:
    conversation = read(
        said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d"),
        said("user", "e"),
    )  # fmt: skip
    assert conversation.turns == (("a", "b"), ("c", "d")) and conversation.said == "e"


def test_neighbouring_messages_of_one_side_are_lines_of_one_text() -> None:
    conversation = read(
        said("user", "a"), said("user", "b"), said("assistant", "c"), said("assistant", "d"),
        said("user", "e"), said("user", "f"),
    )  # fmt: skip
    assert conversation.turns == (("a\nb", "c\nd"),) and conversation.said == "e\nf"


def test_an_empty_message_is_no_line() -> None:
    assert read(said("user", "a"), said("user", ""), said("user", "b")).said == "a\nb"


def test_a_text_comes_before_its_calls_and_an_empty_one_is_left_out() -> None:
    answer = said("tool", "x", tool_call_id="c")
    calls, other = [CALL, {**CALL, "id": "d"}], said("tool", "y", tool_call_id="d")
    spoken = read(said("user", "a"), said("assistant", "so", tool_calls=calls), answer, other)
    assert spoken.turns == (("a", f"so\n{WRITTEN}\n{WRITTEN}"),)
    silent = read(said("user", "a"), said("assistant", None, tool_calls=[CALL]), answer)
    assert silent.turns == (("a", WRITTEN),)


def test_a_developers_message_is_the_system_text() -> None:
    conversation = read(said("developer", "Be brief."), said("user", "a"))
    assert (conversation.system, conversation.said) == ("Be brief.", "a")


def test_parts_of_a_text_are_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read(said("user", parts)).said == "ab"


def test_tools_without_a_system_message_are_the_system_text() -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    system = read(said("user", "a"), tools=tools).system
    assert system is not None and system.startswith("To call a function")
    assert '<tools>\n{"name": "look"}\n</tools>' in system


def test_tools_that_may_not_be_called_are_not_announced() -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    assert read(said("user", "a"), tools=tools, tool_choice="none").system is None


def test_an_empty_system_message_is_refused() -> None:
    status, param, line = refused(said("system", ""), said("user", "a"))
    assert (status, param) == (400, "messages.0.content") and "leave it out" in line


@pytest.mark.parametrize(
    "messages",
    [[said("system", "a")], [said("user", "a"), said("assistant", "b")]],
    ids=["none", "an assistant's"],
)
def test_without_a_message_to_answer_there_is_a_refusal(messages: list[dict[str, Any]]) -> None:
    assert refused(*messages)[:2] == (400, "messages")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_results_in_any_order_which_openais_api_accepts_are_read_as_those_of_their_own_calls(
    order: tuple[int, ...],
) -> None:
    """By hand: the text of a result names no call, so results are written in the order of calls,
    for an agent that is served and for one behind the gateway."""
    calls = [{**CALL, "id": f"call {number}"} for number in range(3)]
    asked = said("user", "a"), said("assistant", None, tool_calls=calls)
    results = [said("tool", str(number), tool_call_id=f"call {number}") for number in order]
    written = "\n".join(f"<tool_response>{number}</tool_response>" for number in range(3))
    assert read(*asked, *results).said == written
    for before in (None, Context(None, entries(request(*asked).messages))):
        assert read_request(request(*asked, *results), before)[0].text == written


ASKED = said("user", "a"), said("assistant", None, tool_calls=[{**CALL, "id": i} for i in "xy"])
X, Y = said("tool", "1", tool_call_id="x"), said("tool", "2", tool_call_id="y")
MISPLACED = {
    "no call": ([said("user", "a"), X, said("user", "b")], "messages.1.tool_call_id", "no call"),
    "an unknown id": (
        [*ASKED, X, {**Y, "tool_call_id": "z"}],
        "messages.3.tool_call_id",
        "no call",
    ),
    "one twice": ([*ASKED, X, X, Y], "messages.3.tool_call_id", "no call"),
    "one again a turn later": (
        [*ASKED, X, Y, said("assistant", "b"), X],
        "messages.5.tool_call_id",
        "no call",
    ),
    "no id": ([*ASKED, X, said("tool", "2")], "messages.3.tool_call_id", "no call"),
    "one missing at the end": ([*ASKED, X], "messages.1.tool_calls", "call 1 of message 1"),
    "one missing": ([*ASKED, Y, said("user", "b")], "messages.1.tool_calls", "call 0 of message 1"),
    "one behind an answer": (
        [*ASKED, X, said("assistant", "b"), Y],
        "messages.1.tool_calls",
        "call 1 of message 1 has no result",
    ),
    "two calls of one id": (
        [ASKED[0], said("assistant", None, tool_calls=[CALL, CALL]), X],
        "messages.1.tool_calls.1.id",
        "id of another call",
    ),
    "another tool's name": ([*ASKED, {**X, "name": "leap"}, Y], "messages.2.name", "another tool"),
}


@pytest.mark.parametrize("kind", MISPLACED)
def test_results_that_do_not_match_their_calls_are_refused_in_one_line(kind: str) -> None:
    """As OpenAI's API: every call is followed by one result, which names it."""
    messages, param, line = MISPLACED[kind]
    assert refused(*messages)[:2] == (400, param)
    message = refused(*messages)[2]
    assert line in message and message.isprintable()


def test_ids_may_repeat_in_a_later_turn() -> None:
    again = said("tool", "3", tool_call_id="x"), said("tool", "4", tool_call_id="y")
    conversation = read(*ASKED, Y, X, ASKED[1], *again)
    assert conversation.turns[1][0] == (
        "<tool_response>1</tool_response>\n<tool_response>2</tool_response>"
    )
    assert conversation.said.endswith(">4</tool_response>")


def test_adjacent_calls_of_two_messages_have_their_results_behind_both() -> None:
    calls = [said("assistant", None, tool_calls=[{**CALL, "id": name}]) for name in "xy"]
    assert read(said("user", "a"), *calls, Y, X).said == read(*ASKED, X, Y).said


def test_the_names_of_speakers_are_written() -> None:
    """Otherwise two speakers of one role would read as one."""
    conversation = read(
        said("system", "Hello.", name="example_user"),
        said("user", "a", name="alice"), said("user", "b", name="bob"), said("user", "c"),
        said("assistant", "d", name="ada"),
        said("user", [{"type": "text", "text": "e"}], name="bob"),
    )  # fmt: skip
    assert conversation.system == "example_user: Hello."
    assert conversation.turns == (("alice: a\nbob: b\nc", "d"),)
    assert conversation.said == "bob: e"


def test_a_name_that_repeats_the_role_or_the_call_says_nothing_new() -> None:
    assert read(said("user", "a", name="user")).said == "a"
    assert read(said("user", "", name="bob"), said("user", "a")).said == "a"
    assert read(*ASKED, {**X, "name": "look"}, Y).said == read(*ASKED, X, Y).said


def test_answers_of_several_assistants_are_refused() -> None:
    status, param, line = refused(
        said("user", "a"), said("assistant", "b", name="ada"), said("user", "c"),
        said("assistant", "d", name="ben"), said("user", "e"),
    )  # fmt: skip
    assert (status, param) == (400, "messages.3.name") and "role user" in line


def test_an_empty_result_of_a_tool_is_written_as_in_training() -> None:
    asked = said("user", "a"), said("assistant", None, tool_calls=[CALL])
    assert read(*asked, said("tool", "", tool_call_id="c")).said == (
        "<tool_response></tool_response>"
    )


def test_system_messages_at_the_beginning_are_paragraphs_of_one() -> None:
    first = said("system", "Be brief."), said("developer", "Be kind.")
    conversation = read(*first, said("user", "a"))
    assert (conversation.system, conversation.said) == ("Be brief.\n\nBe kind.", "a")
    later = read(first[0], said("user", "a"), said("system", "Now."))
    assert (later.system, later.said) == ("Be brief.", "a\nNow.")
    status, param, _ = refused(first[0], said("system", ""), said("user", "a"))
    assert (status, param) == (400, "messages.1.content")
