"""Anthropic's Messages protocol: requests and the events of answers, written out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
import translated
from translated import events_of, refusal

from colearn.deploy.client.protocol.conversation import read_conversation
from colearn.deploy.client.protocol.message_writer import MessageWriter
from colearn.deploy.client.protocol.messages import parse_message_request
from colearn.deploy.client.protocol.schema import ChatRequest, parse

USER = {"role": "user", "content": "go"}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "c", "name": "look", "input": {"at": "sky"}}
TEXT = {"type": "text", "text": "go"}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "blue"}
USAGE = {**translated.USAGE, "prompt_tokens_details": {"cached_tokens": 3}}


def request(*messages: Any, **fields: Any) -> ChatRequest:
    body = {"model": "one", "max_tokens": 9, "messages": messages or [USER], **fields}
    return parse_message_request(json.dumps(body).encode())


def refused(*messages: Any, **fields: Any) -> tuple[str | None, str]:
    return refusal(request, *messages, **fields)


def completion(*arguments: Any, **more: Any) -> dict[str, Any]:
    return {**translated.completion(*arguments, **more), "usage": USAGE}


def events(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return events_of(MessageWriter(), answer)


@pytest.mark.parametrize(
    ("result", "read"),
    [
        ({"content": "late", "is_error": True}, "late"),
        ({"content": "", "is_error": True}, "error"),
        ({"content": None, "is_error": True}, "error"),
        ({"content": "", "is_error": False}, ""),
    ],
)
def test_a_tool_that_failed_without_a_text_is_not_read_as_one_that_said_nothing(
    result: dict[str, Any], read: str
) -> None:
    called = {"role": "assistant", "content": [CALL]}
    asked = request(USER, called, {"role": "user", "content": [RESULT | result]})
    assert read_conversation(asked).said == f"<tool_response>{read}</tool_response>"


def test_blocks_are_the_messages_of_the_same_chat_completion_request() -> None:
    hint = {"cache_control": {"type": "ephemeral"}}
    asked = request(
        {"role": "user", "content": [{"type": "text", "text": "Look.", **hint}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "So.", "citations": None},
                CALL,
            ],
        },
        {
            "role": "user",
            "content": [
                {**RESULT, "content": [{"type": "text", "text": "blue"}], "is_error": False},
                {"type": "text", "text": "And?"},
            ],
        },
        system=[{"type": "text", "text": "You are one.", **hint}],
        tools=[{**TOOL, **hint, "type": "custom"}],
        stop_sequences=["END"],
    )
    function = {"name": "look", "arguments": '{"at": "sky"}'}
    chat = parse(
        json.dumps(
            {
                "messages": [
                    {"role": "system", "content": "You are one."},
                    {"role": "user", "content": "Look."},
                    {
                        "role": "assistant",
                        "content": "So.",
                        "tool_calls": [{"id": "c", "function": function}],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": "blue"},
                    {"role": "user", "content": "And?"},
                ],
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "look", "parameters": {"type": "object"}},
                    }
                ],
            }
        ).encode()
    )
    assert read_conversation(asked) == read_conversation(chat)
    assert (asked.max_tokens, asked.stops, asked.include_reasoning) == (9, ("END",), True)


def test_reasoning_text_and_calls_are_blocks_in_this_order() -> None:
    function = {"name": "look", "arguments": '{"at": "sky"}'}
    calls = [{"id": "c", "type": "function", "function": function}]
    answer = completion("So.", "tool_calls", reasoning="hm", tool_calls=calls)
    told = events(answer)[1:-2]
    signature = told.pop(2)
    assert signature["delta"] == {"type": "signature_delta", "signature": "chatcmpl-1"}
    assert [(one["type"], one["index"]) for one in told] == [
        (f"content_block_{part}", number)
        for number in range(3)
        for part in ("start", "delta", "stop")
    ]
    assert [one["delta"] for one in told[1::3]] == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "text_delta", "text": "So."},
        {"type": "input_json_delta", "partial_json": '{"at": "sky"}'},
    ]
    whole = MessageWriter().whole(answer)
    assert whole["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "chatcmpl-1"},
        {"type": "text", "text": "So."},
        CALL,
    ]
    assert whole["stop_reason"] == "tool_use"
    assert whole["usage"] == {
        "input_tokens": 5 - 3,  # read from a cache
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "output_tokens": 2,
    }
    # the client sends the blocks back: they are the same conversation
    back = request(
        USER, {"role": "assistant", "content": whole["content"]}, {**USER, "content": [RESULT]}
    )
    assert (back.messages[1].text, back.messages[1].calls[0].function.read()) == (
        "So.",
        {"at": "sky"},
    )


@pytest.mark.parametrize(
    ("finish", "stop", "reason"),
    [
        ("stop", None, "end_turn"),
        ("stop", "END", "stop_sequence"),
        ("length", None, "max_tokens"),
        ("tool_calls", None, "tool_use"),
    ],
)
def test_an_ending_has_the_protocols_name(finish: str, stop: str | None, reason: str) -> None:
    answer = completion("so", finish)
    answer["choices"][0]["stop_reason"] = stop
    whole = MessageWriter().whole(answer)
    assert (whole["stop_reason"], whole["stop_sequence"]) == (reason, stop)
    delta = events(answer)[-2]["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": stop}


def test_a_stop_string_is_named_where_it_is_the_reason() -> None:
    answer = completion("so", "tool_calls")
    answer["choices"][0]["stop_reason"] = "</tool_call>"
    whole = MessageWriter().whole(answer)
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("tool_use", None)


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", CALL),
        ("user", THOUGHT),
        ("assistant", RESULT),
        ("system", CALL),
    ],
)
def test_no_block_of_another_role_is_left_out(role: str, block: dict[str, Any]) -> None:
    param, line = refused(USER, {"role": role, "content": [TEXT, block]}, USER)
    other = "user" if block is RESULT else "assistant"
    assert param == "messages.1"
    assert line == f"'messages.1': blocks of type {block['type']} belong to the role {other}"


def test_an_empty_answer_is_an_empty_text() -> None:
    for content in ("", None):
        assert MessageWriter().whole(completion(content))["content"] == [
            {"type": "text", "text": ""}
        ]


def test_token_ids_are_beside_the_content() -> None:
    answer = completion("hello")
    answer["prompt_token_ids"], answer["choices"][0]["token_ids"] = [1, 2], [3]
    whole = MessageWriter().whole(answer)
    assert (whole["prompt_token_ids"], whole["token_ids"]) == ([1, 2], [3])
    assert events(answer)[-2]["token_ids"] == [3]


def test_reasoning_is_left_out_if_the_request_omits_it() -> None:
    assert request(thinking={"type": "adaptive", "display": "omitted"}).include_reasoning is False


NEUTRAL = {
    "cache_control": {"type": "ephemeral"},
    "container": None,
    "metadata": {"user_id": "me"},
    "output_config": {},
    "service_tier": "auto",
    "thinking": {"type": "disabled"},
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
}


@pytest.mark.parametrize("field", NEUTRAL)
def test_a_field_that_changes_no_answer_is_taken(field: str) -> None:
    assert request(**{field: NEUTRAL[field]}) == request()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"output_config": {"effort": "low"}}, "output_config"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.type"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools.0"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 2}, "n"),
        ({"stop": "x"}, "stop"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"top_k": 0}, "top_k"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    told = refused(**fields)
    assert told[0] == param and told[1].startswith(f"'{param}")


@pytest.mark.parametrize("kind", ["image", "SECRET"])
def test_images_are_refused_in_one_line(kind: str) -> None:
    image = {"type": kind, "source": {"type": "base64", "data": "SECRET"}}
    line = "agents read text only; leave out images, audio and files"
    place = "messages.0.content.0.type"
    assert refused({"role": "user", "content": [image]}) == (place, f"'{place}': {line}")
    called = {"role": "assistant", "content": [CALL]}
    result = {"role": "user", "content": [{**RESULT, "content": [image]}]}
    place = "messages.2.content.0.content.0.type"
    assert refused(USER, called, result) == (place, f"'{place}': {line}")


@pytest.mark.parametrize(
    ("messages", "param", "line"),
    [
        (
            [USER, {"role": "assistant", "content": [CALL]}, USER],
            "messages.1",
            "call 0 of 'messages.1' has no result",
        ),
        ([{"role": "user", "content": [RESULT]}], "messages.0", "'messages.0' is a tool's, but"),
        (
            [{"role": "user", "content": [TEXT, TEXT]}, {"role": "assistant", "content": [CALL]}],
            "messages.1",
            "call 0 of 'messages.1' has no result",
        ),
        ([USER, {"role": "assistant", "content": "so"}], "messages", "the last message must be"),
    ],
)
def test_a_refused_conversation_names_the_messages_of_the_request(
    messages: list[Any], param: str, line: str
) -> None:
    told = refused(*messages, system="You are one.")
    assert told[0] == param and told[1].startswith(line)
