"""What a program is told: a completion, whole or as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from colearn.contract import Said
from colearn.wire.tools import message, read_calls, write_call

from .state import GatewayCall

_REASONS = {"end": "stop", "stop": "stop", "length": "length"}


def completion(call: GatewayCall, said: str) -> tuple[dict[str, Any], str]:
    """The completion, and the answer's text as it enters the agent's context."""
    text = _cut(said, () if call.prompt.limits is None else call.prompt.limits.stop)
    content, calls = read_calls(text, call.offered, several=call.several)
    finish = _REASONS[said.action.finish] if isinstance(said, Said) else "stop"
    choice = {
        "index": 0,
        "message": message(content, calls),
        "logprobs": _logprobs(said),
        "finish_reason": "tool_calls" if calls else finish,
    }
    tokens = len(said.action.tokens) if isinstance(said, Said) else 0
    body = {
        "id": call.request,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.name,
        "choices": [choice],
        "usage": {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens},
    }
    shown = (*((content,) if content else ()), *(write_call(*one) for one in calls))
    return body, "\n".join(shown)


def stream(body: Mapping[str, Any], *, usage: bool) -> Iterator[bytes]:
    """A completion as server-sent events."""
    head = {key: body[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    (choice,) = body["choices"]
    told = choice["message"]
    parts: list[tuple[dict[str, Any], Any, str | None]] = [
        ({"role": "assistant", "content": ""}, None, None)
    ]
    if told["content"]:
        parts.append(({"content": told["content"]}, choice["logprobs"], None))
    for number, call in enumerate(told.get("tool_calls", ())):
        parts.append(({"tool_calls": [{**call, "index": number}]}, None, None))
    parts.append(({}, None, choice["finish_reason"]))
    for delta, logprobs, finish in parts:
        entry = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        yield _event({**head, "choices": [entry], **({"usage": None} if usage else {})})
    if usage:
        yield _event({**head, "choices": [], "usage": body["usage"]})
    yield b"data: [DONE]\n\n"


def _event(content: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def _cut(text: str, stops: tuple[str, ...]) -> str:
    """The text up to the first stop string that the request named."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


def _logprobs(said: str) -> dict[str, Any] | None:
    if not isinstance(said, Said):
        return None
    texts = said.player.spell(said.action)
    if not texts:
        return None
    content = [
        {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}
        for text, logprob in zip(texts, said.action.logprobs, strict=True)
    ]
    return {"content": content, "refusal": None}
