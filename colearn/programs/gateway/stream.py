"""Streams answers as server-sent events, which are sent while the tokens are sampled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from colearn.contract import Listener
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.events import DONE, event
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.engines.growing_text import held_back
from colearn.text.reasoning import AnswerStream

from .program_run import PendingRequest


class Streamed:
    """The answer to one request as a stream.

    An answer that may call functions is sent in one piece, because the calls are parsed once the
    answer is complete. So is an answer with log-probabilities, which are those of its content: text
    in front of a stray `</think>` turns out to be reasoning after it would have been sent.
    """

    def __init__(self, body: ChatRequest) -> None:
        self._stops = body.stops
        self._usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        self._loop = asyncio.get_running_loop()
        self._parts: asyncio.Queue[str | None] = asyncio.Queue()
        """The parts of the answer's text, in order. None means that the answer is complete."""
        self.listener: Listener | None = None if body.offered or body.logprobs else self._put
        """Callback that receives the text; it may be called from any thread."""

    def watch(self, pending: PendingRequest) -> None:
        """Ends the stream when the request's answer is complete."""
        pending.answer.add_done_callback(lambda _: self._put(None))

    async def first(self) -> str | None:
        """Waits for the first part of the text, and returns it. Returns None if the answer ends
        without text."""
        return await self._parts.get()

    async def events(self, pending: PendingRequest, part: str | None) -> AsyncIterator[bytes]:
        """Yields the events of the answer. `part` is the first part of the text, or None if the
        answer is already complete."""
        head = {
            "id": pending.name,
            "created": int(time.time()),
            "model": pending.agent,
            "object": "chat.completion.chunk",
        }
        yield self._chunk(head, {"role": "assistant", "content": ""})
        text, pushed, answer_text = "", 0, AnswerStream()
        while part is not None:
            text += part
            end = len(text) - held_back(text, self._stops)
            end = min([end, *(text.find(stop) for stop in self._stops if stop in text)])
            if end > pushed:
                grown, pushed = answer_text.push(text[pushed:end]), end
                if grown:
                    yield self._chunk(head, {"content": grown})
            part = await self._parts.get()
        try:
            answer = pending.answer.result()
        except ServeError as error:
            yield event(error.body())
            return
        (choice,) = answer["choices"]
        message = choice["message"]
        tail = answer_text.finish(message["content"] or "")
        if tail or choice["logprobs"]:
            yield self._chunk(head, {"content": tail}, choice["logprobs"])
        for number, call in enumerate(message.get("tool_calls", ())):
            yield self._chunk(head, {"tool_calls": [{**call, "index": number}]})
        yield self._chunk(head, {}, finish=choice["finish_reason"])
        if self._usage:
            yield event({**head, "choices": [], "usage": answer["usage"]})
        yield DONE

    def _put(self, part: str | None) -> None:
        self._loop.call_soon_threadsafe(self._parts.put_nowait, part)

    def _chunk(
        self,
        head: Mapping[str, Any],
        delta: Mapping[str, Any],
        logprobs: Any = None,
        finish: str | None = None,
    ) -> bytes:
        entry = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return event({**head, "choices": [entry], **({"usage": None} if self._usage else {})})
