"""Builds the chat completions that answer a program's requests."""

from __future__ import annotations

import time
from typing import Any

from colearn.client.completion import FINISH_REASONS
from colearn.client.protocol.tool_call_text import message, read_calls, write_answer
from colearn.contract import SampledAction

from .state import GatewayCall


def completion(call: GatewayCall, sampled: SampledAction) -> tuple[dict[str, Any], str]:
    """Returns the completion, and the answer's text in the form in which it is added to the agent's
    context.

    Neither the completion nor the text contains reasoning.
    """
    action = sampled.action
    text = _cut(action.text, () if call.prompt.limits is None else call.prompt.limits.stop)
    content, calls = read_calls(text, call.offered, several=call.several)
    choice = {
        "index": 0,
        "message": message(content, calls),
        "logprobs": _logprobs(sampled) if call.logprobs else None,
        "finish_reason": "tool_calls" if calls else FINISH_REASONS[action.finish],
    }
    body = {
        "id": call.request,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.name,
        "choices": [choice],
        "usage": _usage(sampled),
    }
    return body, write_answer(content, calls)


def _cut(text: str, stops: tuple[str, ...]) -> str:
    """Returns the text before the first stop string of the request."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


def _usage(sampled: SampledAction) -> dict[str, int]:
    prompt, completion = sampled.context_tokens, len(sampled.action.tokens)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _logprobs(sampled: SampledAction) -> dict[str, Any] | None:
    texts = () if sampled.player is None else sampled.player.spell(sampled.action)
    if not texts:
        return None
    content = [
        {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}
        for text, logprob in zip(texts, sampled.action.logprobs, strict=True)
    ]
    return {"content": content, "refusal": None}
