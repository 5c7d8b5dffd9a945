"""Completions, and the chunks of streams, which a writer puts into the request's protocol."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from colearn.contract.types import Finish
from colearn.deploy.client.completion import finish_reason
from colearn.deploy.client.protocol.events import event
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.client.protocol.tool_call_text import Call, content_spans, message, read_calls
from colearn.engines.job import Choice, Job, TokenDrawn
from colearn.text.reasoning import AnswerStream, reasoning_of
from colearn.text.spans import Span, joined

from .spelling import Spelling


class ChatAnswer:
    """The answer to one request.

    spelling: set if log-probabilities were requested.
    asked: the request.
    opened: the text with which the prompt opened reasoning. Reasoning is excluded from content and
    calls; `token_ids` has all tokens.
    write: converts a chunk to bytes.
    """

    def __init__(
        self,
        model: str,
        job: Job,
        spelling: Spelling | None,
        request: ChatRequest,
        *,
        opened: str = "",
        write: Callable[[Mapping[str, Any]], bytes] = event,
    ) -> None:
        self.job, self._spelling = job, spelling
        self._asked, self._opened, self._write = request, opened, write
        self._parts = [AnswerStream() for _ in job.choices]
        self._thoughts = [""] * len(job.choices)
        """The reasoning of each choice that a stream has sent."""
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
        return {**head, "choices": choices, "usage": self.usage(), **self._prompt}

    @property
    def _prompt(self) -> dict[str, Any]:
        if not self._asked.return_token_ids:
            return {}
        return {"prompt_token_ids": list(self.job.request.history.ids)}

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
        delta = {"role": "assistant", "content": ""}
        return self._chunk(choice, delta, usage, self._prompt)

    def grown(self, token: TokenDrawn, usage: bool) -> bytes | None:
        """Returns the chunk for one token, if the token adds to the content."""
        part = self._parts[token.choice]
        content = part.push(token.text)
        if not content:
            return None
        delta = {**self._thought(token.choice, part.settled), "content": content}
        return self._chunk(token.choice, delta, usage)

    def ended(self, choice: int, finish: Finish, usage: bool) -> bytes:
        """Returns the last chunks: a chunk with the text that was held back, if there is any, and a
        chunk with the finish reason."""
        answered = self.job.choices[choice]
        text = self._opened + answered.text
        spans, calls = self._read(text)
        content = joined(text, spans)
        tail = self._parts[choice].finish(content)
        delta = {**self._thought(choice, text), **({"content": tail} if tail else {})}
        chunk = self._chunk(choice, delta, usage) if delta else b""
        return chunk + self._chunk(choice, {}, usage, **self._ending(answered, finish, calls))

    def _thought(self, choice: int, text: str) -> dict[str, str]:
        """Returns the reasoning in `text`, if it was requested, that the stream has not sent."""
        if not self._asked.include_reasoning:
            return {}
        sent, self._thoughts[choice] = self._thoughts[choice], reasoning_of(text)
        tail = self._thoughts[choice].removeprefix(sent)
        return {"reasoning": tail} if tail else {}

    def _ending(self, choice: Choice, finish: Finish, calls: Sequence[Call]) -> dict[str, Any]:
        _, several = _offered(self._asked)
        ending: dict[str, Any] = {
            "finish_reason": finish_reason(finish, calls=bool(calls), several=several),
            "stop_reason": choice.stop,
        }
        if self._asked.return_token_ids:
            ending["token_ids"] = choice.tokens
        return ending

    def _read(self, text: str) -> tuple[list[Span], list[Call]]:
        """Returns the parts of the text that are the content, and the calls."""
        offered, several = _offered(self._asked)
        return content_spans(text, offered, several=several)

    def counted(self) -> bytes:
        """Returns the chunk with the token counts, which ends a stream with `include_usage`."""
        return self._write({**self._chunk_head(), "choices": [], "usage": self.usage()})

    def _choice(self, number: int, choice: Choice) -> dict[str, Any]:
        text = self._opened + choice.text
        spans, calls = self._read(text)
        return {
            "index": number,
            "message": message(joined(text, spans), calls, **self._thought(number, text)),
            "logprobs": self._logprobs(choice, text, spans),
            **self._ending(choice, choice.finish, calls),
        }

    def _logprobs(self, choice: Choice, text: str, spans: Sequence[Span]) -> dict[str, Any] | None:
        if self._spelling is None:
            return None
        return {"content": self._spelling.whole(choice, text, spans), "refusal": None}

    @property
    def in_one_piece(self) -> bool:
        """Whether a stream has the whole answer at its end: function calls, or the share of tokens
        in the content, are not known before."""
        return bool(self._asked.offered) or self._spelling is not None

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        usage: bool,
        more: Mapping[str, Any] = MappingProxyType({}),
        **ending: Any,
    ) -> bytes:
        entry = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk = {**self._chunk_head(), "choices": [{**entry, **ending}], **more}
        return self._write({**chunk, "usage": None} if usage else chunk)


def read_answer(text: str, request: ChatRequest) -> tuple[str, list[Call]]:
    """Returns the content and the calls of an answer to a request."""
    offered, several = _offered(request)
    return read_calls(text, offered, several=several)


def _offered(request: ChatRequest) -> tuple[list[str], bool]:
    """Returns the names of the offered functions, and whether an answer may call several."""
    return [function.name for function in request.offered], request.parallel_tool_calls is not False
