"""Builds the chat completions that answer a program's requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from colearn.contract import SampledAction
from colearn.deploy.client.completion import FINISH_REASONS
from colearn.deploy.client.protocol.logprobs import logprob_entry
from colearn.deploy.client.protocol.tool_call_text import content_spans, message, write_answer
from colearn.text.reasoning import reasoning_of
from colearn.text.spans import Span, joined, shares

from .state import GatewayCall


def completion(call: GatewayCall, sampled: SampledAction) -> tuple[dict[str, Any], str]:
    """Returns the completion, and the answer's text in the form in which it is added to the agent's
    context.

    Neither the content nor the text contains reasoning.
    """
    action = sampled.action
    stop, text = _cut(action.text, () if call.prompt.limits is None else call.prompt.limits.stop)
    spans, calls = content_spans(text, call.offered, several=call.several)
    content = joined(text, spans)
    choice = {
        "index": 0,
        "message": message(content, calls, reasoning_of(text) if call.reasoning else ""),
        "logprobs": _logprobs(sampled, text, spans) if call.logprobs else None,
        "finish_reason": "tool_calls" if calls else FINISH_REASONS[action.finish],
        "stop_reason": stop,
    }
    body = {
        "id": call.request,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.name,
        "choices": [choice],
        "usage": _usage(sampled),
    }
    if call.token_ids:
        body["prompt_token_ids"] = list(sampled.context)
        choice["token_ids"] = list(action.tokens)
    return body, write_answer(content, calls)


def _cut(text: str, stops: tuple[str, ...]) -> tuple[str | None, str]:
    """Returns the first stop string of the request in the text, if any, and the text before it."""
    stop = min((stop for stop in stops if stop in text), key=text.find, default=None)
    return stop, text if stop is None else text[: text.find(stop)]


def _usage(sampled: SampledAction) -> dict[str, int]:
    prompt, completion = len(sampled.context), len(sampled.action.tokens)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _logprobs(sampled: SampledAction, text: str, spans: Sequence[Span]) -> dict[str, Any] | None:
    """Returns the tokens' log-probabilities. A token's `bytes` are its contribution to the content,
    which `spans` are in `text`, the answer up to a stop string."""
    action = sampled.action
    pieces = () if sampled.player is None else sampled.player.spell(action)
    if not pieces:
        return None
    opened = action.text.encode().removesuffix(b"".join(pieces))
    _, *written = shares([opened, *pieces], text, spans)
    content = [
        logprob_entry(piece.decode("utf-8", "replace"), share, logprob)
        for piece, share, logprob in zip(pieces, written, action.logprobs, strict=True)
    ]
    return {"content": content, "refusal": None}
