"""Completions and stream chunks in OpenAI's format."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from colearn.contract.types import Finish
from colearn.deploy.client.completion import FINISH_REASONS
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.events import event
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.client.protocol.tool_call_text import Call, content_spans, message, read_calls
from colearn.engines.job import Choice, Job, TokenDrawn
from colearn.text.reasoning import AnswerStream
from colearn.text.spans import Span, joined

from .spelling import Spelling


class ChatAnswer:
    """The answer to one request.

    spelling: set if log-probabilities were requested.
    asked: the request.
    opened: the text with which the prompt opened reasoning. Reasoning is excluded from content and
    calls; `colearn.token_ids` has all tokens.
    """

    def __init__(
        self,
        model: str,
        job: Job,
        spelling: Spelling | None,
        request: ChatRequest,
        *,
        opened: str = "",
    ) -> None:
        self.job, self._spelling = job, spelling
        self._asked, self._opened = request, opened
        self._parts = [AnswerStream() for _ in job.choices]
        for part in self._parts:
            part.push(opened)
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    def whole(self) -> dict[str, Any]:
        choices = [self._choice(number, c) for number, c in enumerate(self.job.choices)]
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": choices, "usage": self.usage()}

    def usage(self) -> dict[str, Any]:
        """Returns token counts; `cached_tokens` are the prompt's tokens in the KV cache."""
        prompt = len(self.job.request.history)
        completion = sum(len(choice.tokens) for choice in self.job.choices)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": prompt - self.job.prefilled},
        }

    def role(self, choice: int, usage: bool) -> bytes:
        return self._chunk(choice, {"role": "assistant", "content": ""}, None, None, usage)

    def grown(self, token: TokenDrawn, usage: bool) -> bytes | None:
        """Returns the chunk for one token; None for an answer that is sent in one piece: its
        function calls, or the share of its tokens in the content, are known at its end."""
        if self._in_one_piece:
            return None
        content = self._parts[token.choice].push(token.text)
        if not content:
            return None
        return self._chunk(token.choice, {"content": content}, None, None, usage)

    def ended(self, choice: int, finish: Finish, usage: bool) -> bytes:
        """Returns the last chunks: a chunk with the text that was held back, if there is any, and a
        chunk with the finish reason."""
        reason = FINISH_REASONS[finish]
        text = self._opened + self.job.choices[choice].text
        spans, calls = self._read(text)
        content = joined(text, spans)
        if self._in_one_piece:
            delta = message(content, calls)
            delta.pop("refusal")
            for number, call in enumerate(delta.get("tool_calls", ())):
                call["index"] = number
            logprobs = self._logprobs(self.job.choices[choice], text, spans)
            chunk = self._chunk(choice, delta, logprobs, None, usage)
            reason = "tool_calls" if calls else reason
        else:
            tail = self._parts[choice].finish(content)
            chunk = self._chunk(choice, {"content": tail}, None, None, usage) if tail else b""
        return chunk + self._chunk(choice, {}, None, reason, usage)

    def _read(self, text: str) -> tuple[list[Span], list[Call]]:
        """Returns the parts of the text that are the content, and the calls."""
        offered, several = _offered(self._asked)
        return content_spans(text, offered, several=several)

    def counted(self) -> bytes:
        """Returns the chunk with the token counts, which ends a stream with `include_usage`."""
        return event({**self._chunk_head(), "choices": [], "usage": self.usage()})

    def _choice(self, number: int, choice: Choice) -> dict[str, Any]:
        text = self._opened + choice.text
        spans, calls = self._read(text)
        return {
            "index": number,
            "message": message(joined(text, spans), calls),
            "logprobs": self._logprobs(choice, text, spans),
            "finish_reason": "tool_calls" if calls else FINISH_REASONS[choice.finish],
            "colearn": {"token_ids": choice.tokens, "finish": choice.finish},
        }

    def _logprobs(self, choice: Choice, text: str, spans: Sequence[Span]) -> dict[str, Any] | None:
        if self._spelling is None:
            return None
        return {"content": self._spelling.whole(choice, text, spans), "refusal": None}

    @property
    def _in_one_piece(self) -> bool:
        return bool(self._asked.offered) or self._spelling is not None

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        logprobs: dict[str, Any] | None,
        reason: str | None,
        usage: bool,
    ) -> bytes:
        entry = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event(
            {**self._chunk_head(), "choices": [entry], **({"usage": None} if usage else {})}
        )


def read_answer(text: str, request: ChatRequest) -> tuple[str, list[Call]]:
    """Returns the content and the calls of an answer to a request."""
    offered, several = _offered(request)
    return read_calls(text, offered, several=several)


def _offered(request: ChatRequest) -> tuple[list[str], bool]:
    """Returns the names of the offered functions, and whether an answer may call several."""
    return [function.name for function in request.offered], request.parallel_tool_calls is not False


def failure(error: ServeError) -> bytes:
    """Returns the chunk that ends a stream with an error."""
    return event(error.body())
