"""OpenAI's Responses protocol: requests and the events of answers, written out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from translated import completion, events_of, refusal

from colearn.deploy.client.protocol.conversation import read_conversation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.response_writer import ResponseWriter
from colearn.deploy.client.protocol.responses import parse_response_request
from colearn.deploy.client.protocol.schema import ChatRequest, parse
from colearn.deploy.client.protocol.writer import chunks

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": True}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at": "sky"}'}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "blue"}


def request(sent: Any, **fields: Any) -> ChatRequest:
    return parse_response_request(json.dumps({"input": sent, **fields}).encode())


def refused(sent: Any = "go", **fields: Any) -> tuple[str | None, str]:
    return refusal(request, sent, **fields)


def events(answer: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    told = events_of(ResponseWriter(request("go", **fields)), answer)
    assert [one.pop("sequence_number") for one in told] == list(range(len(told)))
    return told


def test_items_are_the_messages_of_the_same_chat_completion_request() -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "x", "text": "hm"}]},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}],
        },
        {**CALL, "id": "f", "status": "completed"},
        RESULT,
    ]
    asked = request(items, instructions="You are one.", tools=[TOOL], max_output_tokens=9)
    function = {"name": "look", "arguments": '{"at": "sky"}'}
    chat = parse(
        json.dumps(
            {
                "messages": [
                    {"role": "system", "content": "You are one."},
                    {"role": "developer", "content": "Be brief."},
                    {"role": "user", "content": "Look."},
                    {
                        "role": "assistant",
                        "content": "So.",
                        "tool_calls": [{"id": "c", "function": function}],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": "blue"},
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
    assert (asked.max_tokens, asked.include_reasoning, asked.stream) == (9, True, None)


def test_calls_without_a_text_are_one_message_of_the_assistant() -> None:
    other = {**CALL, "call_id": "d"}
    items = ["go", CALL, other, RESULT, {**RESULT, "call_id": "d"}]
    asked = request([{"role": "user", "content": items[0]}, *items[1:]])
    assert [len(message.calls) for message in asked.messages] == [0, 2, 0, 0]


def test_reasoning_text_and_calls_are_items_in_this_order() -> None:
    function = {"name": "look", "arguments": '{"at": "sky"}'}
    calls = [{"id": name, "type": "function", "function": function} for name in "cd"]
    answer = completion("So.", "tool_calls", reasoning="hm", tool_calls=calls)
    told = events(answer, tools=[TOOL])
    assert [one["type"].removeprefix("response.") for one in told[2:-1]] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        *("output_item.added", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done"),
    ]
    places = [one["output_index"] for one in told[2:-1]]
    assert places == [0] * 6 + [1] * 6 + [2] * 4 + [3] * 4
    reasoning, message, first, second = told[-1]["response"]["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "hm"}]
    part = {"type": "output_text", "text": "So.", "annotations": [], "logprobs": []}
    assert message == {
        "id": "message_1_chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    assert [(one["call_id"], one["arguments"]) for one in (first, second)] == [
        ("c", '{"at": "sky"}'),
        ("d", '{"at": "sky"}'),
    ]
    # the client sends the items back: they are the same conversation
    back = [{"role": "user", "content": "go"}, *told[-1]["response"]["output"]]
    results = [{**RESULT, "call_id": name} for name in "cd"]
    (_, answered, *_) = request([*back, *results]).messages
    assert (answered.text, [call.id for call in answered.calls]) == ("So.", ["c", "d"])


def test_an_answer_that_is_cut_is_incomplete() -> None:
    last = events(completion("hel", "length"))[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert last["response"]["output"][0]["status"] == "incomplete"
    calls = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    last = events(completion("So", "length", tool_calls=calls), tools=[TOOL])[-1]
    assert last["type"] == "response.incomplete"  # and its calls are whole
    assert [item["status"] for item in last["response"]["output"]] == ["completed", "completed"]


def test_an_empty_answer_is_an_empty_message() -> None:
    for content in ("", None):
        (item,) = events(completion(content))[-1]["response"]["output"]
        assert item["content"][0]["text"] == ""


def test_a_whole_response_is_the_last_of_its_stream() -> None:
    answer = completion("hello", reasoning="hm")
    answer["prompt_token_ids"], answer["choices"][0]["token_ids"] = [1, 2], [3]
    whole = ResponseWriter(request("go")).whole(answer)
    assert whole == events(answer)[-1]["response"]
    assert (whole["prompt_token_ids"], whole["token_ids"]) == ([1, 2], [3])
    assert (whole["object"], whole["status"], whole["store"]) == ("response", "completed", False)
    assert whole["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    }


@pytest.mark.parametrize("begun", [False, True])
def test_a_stream_that_fails_ends_in_the_error_and_a_failed_response(begun: bool) -> None:
    writer = ResponseWriter(request("go"))
    for chunk in [*chunks(completion("hel"), usage=False)][: 2 * begun]:
        writer.write(chunk)
    raw = writer.failed(ServeError(503, "no more")).decode().strip().split("\n\n")
    names, bodies = zip(*(one.split("\ndata: ") for one in raw), strict=True)
    assert names == ("event: error", "event: response.failed")
    error, failed = map(json.loads, bodies)
    assert error["error"]["message"] == error["message"] == "no more"
    assert (error["type"], error["code"], error["param"]) == ("error", None, None)
    assert failed["sequence_number"] == error["sequence_number"] + 1 == (6 if begun else 1)
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "no more"}
    statuses = [item["status"] for item in failed["response"]["output"]]
    assert statuses == ["incomplete"] * begun


NEUTRAL = {
    "background": False,
    "client_metadata": {"a": "b"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": "auto"},
    "store": True,
    "stream_options": {"include_obfuscation": False},
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "truncation": "disabled",
    "user": "me",
}


@pytest.mark.parametrize("field", NEUTRAL)
def test_a_field_that_changes_no_answer_is_taken(field: str) -> None:
    asked = request("go", **{field: NEUTRAL[field]})
    assert asked.messages == request("go").messages


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"background": True}, "background"),
        ({"previous_response_id": "r"}, "previous_response_id"),
        ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format.type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web_search"}]}, "tools.0"),
        ({"tools": [{"type": "custom", "name": "look"}]}, "tools.0"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["file_search_call.results"]}, "include.0"),
        ({"max_tokens": 3}, "max_tokens"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields)[0] == param


def test_images_are_refused_in_one_line() -> None:
    image = {"type": "input_image", "image_url": "data:SECRET"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "See."}, image]}]
    assert refused(items) == (
        "input.0.content.1.type",
        "'input.0.content.1.type': agents read text only; leave out images, audio and files",
    )
    output = {**RESULT, "output": [image]}
    assert refused([{"role": "user", "content": "go"}, CALL, output])[0] == "input.2.output.0.type"


@pytest.mark.parametrize("kind", ["item_reference", "SECRET"])
def test_another_item_is_refused_by_its_place(kind: str) -> None:
    param, message = refused([{"role": "user", "content": "go"}, {"type": kind, "id": "x"}])
    assert param == "input.1" and kind not in message


@pytest.mark.parametrize(
    ("items", "param", "line"),
    [
        ([CALL], "input.0", "call 0 of 'input.0' has no result"),
        ([{"role": "user", "content": "go"}, RESULT], "input.1", "'input.1' is a tool's, but no"),
        ([{"role": "assistant", "content": "so"}], "input", "the last message must be"),
        ([{"type": "reasoning"}, RESULT], "input.1", "'input.1' is a tool's"),
    ],
)
def test_a_refused_conversation_names_the_items_of_the_request(
    items: list[Any], param: str, line: str
) -> None:
    told = refused(items)
    assert told[0] == param and told[1].startswith(line)
