"""The events of one streamed answer, text by text, written out by hand."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import parse
from colearn.programs.gateway.program_run import PendingRequest
from colearn.programs.gateway.stream import Streamed

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
LOGPROBS = {"content": [{"token": "hi", "logprob": -1.0}]}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
CALLS = [
    {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for name in ("first", "second")
]


def answer(
    content: str | None, finish: str = "stop", logprobs: Any = None, **message: Any
) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "logprobs": logprobs, "finish_reason": finish}
    return {"choices": [choice], "usage": USAGE}


def streamed(parts: list[str], result: dict[str, Any] | ServeError, **fields: Any) -> list[bytes]:
    """All events of a request whose text arrives in these parts."""
    body = {"messages": [{"role": "user", "content": "go"}], "stream": True, **fields}
    request = parse(json.dumps(body).encode())

    async def main() -> list[bytes]:
        stream = Streamed(request)
        asked = PendingRequest("one", request, listener=stream.listener)
        stream.watch(asked)
        for part in parts:
            if asked.listener is not None:
                asked.listener(part)
        if isinstance(result, ServeError):
            asked.answer.set_exception(result)
        else:
            asked.answer.set_result(result)
        return [event async for event in stream.events(asked, await stream.first())]

    return asyncio.run(asyncio.wait_for(main(), 30))


def chunks(events: list[bytes]) -> list[dict[str, Any]]:
    """What is between `data: ` and the blank line, without the end's mark."""
    return [json.loads(event.decode()[6:-2]) for event in events if b"[DONE]" not in event]


def deltas(events: list[bytes]) -> list[Any]:
    """(delta, finish reason) of each choice."""
    choices = [choice for chunk in chunks(events) for choice in chunk.get("choices", ())]
    return [(choice["delta"], choice["finish_reason"]) for choice in choices]


def test_a_text_is_a_role_its_parts_the_reason_of_its_end_and_a_mark() -> None:
    events = streamed(["he", "llo"], answer("hello", "length"))
    assert deltas(events) == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "he"}, None),
        ({"content": "llo"}, None),
        ({}, "length"),
    ]
    assert events[-1] == b"data: [DONE]\n\n"
    assert events[1].startswith(b"data: {") and events[1].endswith(b"}\n\n")


def test_what_is_held_back_before_a_stop_is_never_sent() -> None:
    """A w may begin the stop wo, and does."""
    events = streamed(["hello w", "orld"], answer("hello "), stop="wo")
    texts = [delta["content"] for delta, _ in deltas(events) if delta.get("content")]
    assert texts == ["hello "]


def test_what_was_held_back_is_sent_at_the_end_if_no_stop_came() -> None:
    events = streamed(["hello w"], answer("hello w"), stop="wo")
    texts = [delta["content"] for delta, _ in deltas(events) if delta.get("content")]
    assert texts == ["hello ", "w"]


def test_an_answer_with_calls_arrives_at_once_with_numbered_calls() -> None:
    result = answer(None, "tool_calls", tool_calls=CALLS)
    assert deltas(streamed(["<tool_call>"], result, tools=TOOLS)) == [
        ({"role": "assistant", "content": ""}, None),
        ({"tool_calls": [{**CALLS[0], "index": 0}]}, None),
        ({"tool_calls": [{**CALLS[1], "index": 1}]}, None),
        ({}, "tool_calls"),
    ]


def test_usage_comes_last_and_only_where_it_is_asked_for() -> None:
    told = chunks(streamed(["hi"], answer("hi"), stream_options={"include_usage": True}))
    assert [chunk["usage"] for chunk in told] == [None, None, None, USAGE]
    assert told[-1]["choices"] == []
    assert not any("usage" in chunk for chunk in chunks(streamed(["hi"], answer("hi"))))


@pytest.mark.parametrize("known", [LOGPROBS, None])
def test_log_probabilities_of_the_answer_are_sent_once(known: Any) -> None:
    told = chunks(streamed(["hi"], answer("hi", logprobs=known)))
    given = [chunk["choices"][0]["logprobs"] for chunk in told]
    assert [one for one in given if one is not None] == ([] if known is None else [known])


def test_a_failure_in_the_middle_is_the_last_event() -> None:
    events = streamed(["he"], ServeError(410, "this episode has ended", code="episode_ended"))
    assert chunks(events)[-1]["error"]["code"] == "episode_ended"
    assert not any(b"[DONE]" in event for event in events)
