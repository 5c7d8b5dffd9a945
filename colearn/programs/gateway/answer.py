"""Builds the chat completions that answer a program's requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from colearn.contract import SampledAction
from colearn.contract.types import Action
from colearn.deploy.client.completion import finish_reason
from colearn.deploy.client.protocol.logprobs import logprob_entry
from colearn.deploy.client.protocol.tool_call_text import content_spans, message, write_answer
from colearn.text.reasoning import opening_mark, reasoning_of
from colearn.text.spans import Span, joined, shares

from .state import GatewayCall


def completion(call: GatewayCall, sampled: SampledAction) -> tuple[dict[str, Any], str]:
    """Returns the completion, and the answer's text in the form in which it is added to the agent's
    context.

    Neither the content nor the text contains reasoning.
    """
    action = sampled.action
    stop, text = _cut(action, () if call.prompt.limits is None else call.prompt.limits.stop)
    finish = action.finish if stop is None else "stop"  # also where the limit is reached with it
    spans, calls = content_spans(text, call.offered, several=call.several)
    content = joined(text, spans)
    choice = {
        "index": 0,
        "message": message(content, calls, reasoning_of(text) if call.reasoning else ""),
        "logprobs": _logprobs(sampled, text, spans) if call.logprobs else None,
        "finish_reason": finish_reason(finish, calls=bool(calls), several=call.several),
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


def _cut(action: Action, stops: tuple[str, ...]) -> tuple[str | None, str]:
    """Returns the first stop string of the request in an action, if any, and the text before it.

    A mark that opens reasoning at the beginning ends no answer, since the prompt may have written
    it; only if there is nothing else, it has the stop string that ended the action.
    """
    text = action.text
    begin = len(opening_mark(text))
    if begin == len(text) and action.finish == "stop":
        begin = 0
    found = {stop: text.find(stop, begin) for stop in stops if stop in text[begin:]}
    stop = min(found, key=found.__getitem__, default=None)
    return stop, text if stop is None else text[: found[stop]]


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
