"""Writes a complete answer as the server-sent events of a stream.

A training run needs no text before the answer is complete, and calls of functions, reasoning and
the log-probabilities of the content are known at its end only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from colearn.deploy.client.protocol.events import DONE, event
from colearn.deploy.client.protocol.schema import ChatRequest


def events(answer: Mapping[str, Any], body: ChatRequest) -> Iterator[bytes]:
    """Yields the events of a completion that answers the request `body`."""
    usage = body.stream_options is not None and bool(body.stream_options.include_usage)
    head = {name: answer[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: Mapping[str, Any], logprobs: Any = None, finish: str | None = None) -> bytes:
        entry = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return event({**head, "choices": [entry], **({"usage": None} if usage else {})})

    (choice,) = answer["choices"]
    message = choice["message"]
    yield chunk({"role": "assistant", "content": ""})
    if message["content"] or choice["logprobs"]:
        yield chunk({"content": message["content"] or ""}, choice["logprobs"])
    for number, call in enumerate(message.get("tool_calls", ())):
        yield chunk({"tool_calls": [{**call, "index": number}]})
    yield chunk({}, finish=choice["finish_reason"])
    if usage:
        yield event({**head, "choices": [], "usage": answer["usage"]})
    yield DONE
