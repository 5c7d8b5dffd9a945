"""The events of one streamed answer, written out by hand."""

from __future__ import annotations

import json
from typing import Any

from colearn.deploy.client.protocol.writer import ChatWriter, chunks

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CALLS = [
    {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for name in ("first", "second")
]


def answer(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "created": 7, "model": "one"}
    return {**head, "choices": [choice], "usage": USAGE}


def streamed(result: dict[str, Any], *, usage: bool = False) -> list[bytes]:
    """All events of a request with this answer."""
    writer = ChatWriter()
    return [*map(writer.write, chunks(result, usage=usage)), writer.done()]


def read(sent: list[bytes]) -> list[dict[str, Any]]:
    """What is between `data: ` and the blank line, without the end's mark."""
    return [json.loads(event.decode()[6:-2]) for event in sent if b"[DONE]" not in event]


def deltas(sent: list[bytes]) -> list[Any]:
    """(delta, finish reason) of each choice."""
    choices = [choice for chunk in read(sent) for choice in chunk.get("choices", ())]
    return [(choice["delta"], choice["finish_reason"]) for choice in choices]


def test_a_text_is_a_role_its_content_the_reason_of_its_end_and_a_mark() -> None:
    sent = streamed(answer("hello", "length"))
    assert deltas(sent) == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "hello"}, None),
        ({}, "length"),
    ]
    assert sent[-1] == b"data: [DONE]\n\n"
    assert sent[1].startswith(b"data: {") and sent[1].endswith(b"}\n\n")
    told = {(chunk["id"], chunk["model"], chunk["object"]) for chunk in read(sent)}
    assert told == {("chatcmpl-1", "one", "chat.completion.chunk")}


def test_an_answer_with_calls_has_numbered_calls() -> None:
    result = answer(None, "tool_calls", tool_calls=CALLS)
    assert deltas(streamed(result)) == [
        ({"role": "assistant", "content": ""}, None),
        ({"tool_calls": [{**CALLS[0], "index": 0}]}, None),
        ({"tool_calls": [{**CALLS[1], "index": 1}]}, None),
        ({}, "tool_calls"),
    ]


def test_usage_comes_last_and_only_where_it_is_asked_for() -> None:
    told = read(streamed(answer("hi"), usage=True))
    assert [chunk["usage"] for chunk in told] == [None, None, None, USAGE]
    assert told[-1]["choices"] == []
    assert not any("usage" in chunk for chunk in read(streamed(answer("hi"))))
