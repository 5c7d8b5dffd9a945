"""Builds the chat completions that answer a program's requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from colearn.contract import SampledAction
from colearn.deploy.client.completion import FINISH_REASONS
from colearn.deploy.client.protocol.logprobs import logprob_entry
from colearn.deploy.client.protocol.tool_call_text import content_spans, message, write_answer
from colearn.text.spans import Span, joined, shares

from .state import GatewayCall


def completion(call: GatewayCall, sampled: SampledAction) -> tuple[dict[str, Any], str]:
    """Returns the completion, and the answer's text in the form in which it is added to the agent's
    context.

    Neither the completion nor the text contains reasoning.
    """
    action = sampled.action
    text = _cut(action.text, () if call.prompt.limits is None else call.prompt.limits.stop)
    spans, calls = content_spans(text, call.offered, several=call.several)
    content = joined(text, spans)
    choice = {
        "index": 0,
        "message": message(content, calls),
        "logprobs": _logprobs(sampled, text, spans) if call.logprobs else None,
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
