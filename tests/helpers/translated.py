"""Requests and answers of protocols that are translated to chat completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from colearn.deploy.client.protocol.conversation import read_conversation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.writer import TranslatingWriter, chunks

USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def refusal(request: Any, *arguments: Any, **fields: Any) -> tuple[str | None, str]:
    """The field and the message with which a request is refused, as it is parsed by `request` or as
    its conversation is read."""
    with pytest.raises(ServeError) as refused:
        asked = request(*arguments, **fields)
        with asked.naming_fields():
            read_conversation(asked)
    assert refused.value.status == 400 and "\n" not in refused.value.message
    return refused.value.param, refused.value.message


def completion(content: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion with one choice; `more` is added to its message."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "created": 7,
        "model": "one",
        "choices": [choice],
        "usage": USAGE,
    }


def events_of(writer: TranslatingWriter, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a streamed answer, each of which has its `type` as its name."""
    raw = b"".join([*map(writer.write, chunks(answer, usage=True)), writer.done()]).decode()
    events = []
    for block in raw.strip().split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events
