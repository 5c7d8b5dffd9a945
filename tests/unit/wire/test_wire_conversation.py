"""Messages of a request as turns, by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from colearn.client.protocol.conversation import SentConversation, read_conversation
from colearn.client.protocol.errors import ServeError
from colearn.client.protocol.schema import parse

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
WRITTEN = '<tool_call>{"name": "look", "arguments": {"a": 1}}</tool_call>'


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def read(*messages: dict[str, Any], **fields: Any) -> SentConversation:
    return read_conversation(parse(json.dumps({"messages": messages, **fields}).encode()))


def refused(*messages: dict[str, Any]) -> tuple[int, str | None, str]:
    with pytest.raises(ServeError) as refusal:
        read(*messages)
    return refusal.value.status, refusal.value.param, refusal.value.message


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
    spoken = read(said("user", "a"), said("assistant", "so", tool_calls=[CALL, CALL]), answer)
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


def test_all_characters_are_counted() -> None:
    conversation = SentConversation("12", (("345", "6"), ("7", "89")), "0123456")
    assert conversation.characters == 2 + 3 + 1 + 1 + 2 + 7
    assert SentConversation(None, (), "0").characters == 1


@pytest.mark.parametrize(
    ("system", "turns", "opens", "continues"),
    [
        (None, (), True, True),
        ("s", (), True, False),
        (None, (("a", "b"),), False, False),
        ("s", (("a", "b"),), False, False),
    ],
)
def test_a_new_text_alone_continues_and_no_earlier_turn_opens(
    system: str | None, turns: Any, opens: bool, continues: bool
) -> None:
    conversation = SentConversation(system, turns, "x")
    assert (conversation.opens, conversation.continues) == (opens, continues)


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


def test_a_result_before_every_call_is_refused_by_its_number() -> None:
    result = said("tool", "x", tool_call_id="c")
    status, param, line = refused(said("user", "a"), result, said("user", "b"))
    assert (status, param) == (400, "messages.1.role") and line.startswith("message 1 is a tool's")


def test_results_may_follow_a_call_of_an_earlier_turn() -> None:
    result = said("tool", "x", tool_call_id="c")
    conversation = read(
        said("user", "a"), said("assistant", None, tool_calls=[CALL]), result,
        said("assistant", "b"), result,
    )  # fmt: skip
    assert conversation.said == "<tool_response>x</tool_response>"


def test_results_of_tools_are_in_the_order_of_their_calls() -> None:
    """By hand: what `first` returned is read as its result, whichever message comes first."""
    calls = [{**CALL, "id": name} for name in ("first", "second")]
    asked = said("user", "a"), said("assistant", None, tool_calls=calls)
    swapped = said("tool", "2", tool_call_id="second"), said("tool", "1", tool_call_id="first")
    written = "<tool_response>1</tool_response>\n<tool_response>2</tool_response>"
    assert read(*asked, *swapped).said == written
    assert read(*asked, *reversed(swapped)).said == written
    unknown = said("tool", "2", tool_call_id="other"), said("tool", "1", tool_call_id="first")
    assert read(*asked, *unknown).said == written.replace("1", "x").replace("2", "1").replace(
        "x", "2"
    )


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
