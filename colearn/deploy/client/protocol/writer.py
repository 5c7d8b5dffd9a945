"""Writes answers in a protocol, from chat completions and their chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ServeError
from .events import DONE, event, typed_event

Chunk = Mapping[str, Any]
"""A chunk of a streamed chat completion, as JSON."""


class ChatWriter:
    """Writes chat completions, which need no translation."""

    def whole(self, completion: Chunk) -> dict[str, Any]:
        """Returns the answer that is not streamed."""
        return dict(completion)

    def write(self, chunk: Chunk) -> bytes:
        """Returns the server-sent events of a chunk."""
        return event(chunk)

    def done(self) -> bytes:
        """Returns the events that end a complete stream."""
        return DONE

    def failed(self, error: ServeError) -> bytes:
        """Returns the event that ends a stream with an error."""
        return event(error.body())


class TranslatingWriter(ChatWriter, ABC):
    """Writes the answers of a protocol other than chat completions, which have one choice.

    An answer that is not streamed is the last state of its stream.
    """

    def __init__(self) -> None:
        self.finish = self.stop = ""
        """`finish_reason` of the answer, and the stop string that ended it, if any."""
        self.usage: Mapping[str, Any] = {}
        self.token_ids: dict[str, Any] = {}
        """The keys of vLLM that the answer has."""
        self._begun = False

    def whole(self, completion: Chunk) -> dict[str, Any]:
        for chunk in chunks(completion, usage=True):
            self.write(chunk)
        self.done()
        return self.answer()

    def write(self, chunk: Chunk) -> bytes:
        events: list[dict[str, Any]] = []
        entries = chunk["choices"]
        for source in (chunk, *entries):
            names = source.keys() & {"prompt_token_ids", "token_ids"}
            self.token_ids |= {name: source[name] for name in names}
        if not self._begun:
            self._begun = True
            events += self.begin(chunk)
        for entry in entries:
            events += self.grow(entry["delta"], entry["logprobs"])
            self.finish = entry["finish_reason"] or self.finish
            self.stop = entry.get("stop_reason") or self.stop
        self.usage = chunk.get("usage") or self.usage
        return b"".join(map(typed_event, events))

    def done(self) -> bytes:
        return b"".join(map(typed_event, self.end()))

    def failed(self, error: ServeError) -> bytes:
        return typed_event(error.body())

    @abstractmethod
    def answer(self) -> dict[str, Any]:
        """Returns the answer as far as it has been written."""

    @abstractmethod
    def begin(self, chunk: Chunk) -> list[dict[str, Any]]:
        """Returns the events before the answer's first part. `chunk` is the first chunk."""

    @abstractmethod
    def grow(self, delta: Mapping[str, Any], logprobs: Any) -> list[dict[str, Any]]:
        """Returns the events of a chunk's reasoning, content and tool calls, in this order."""

    @abstractmethod
    def end(self) -> list[dict[str, Any]]:
        """Returns the events that complete the answer."""


def chunks(answer: Chunk, *, usage: bool) -> Iterator[dict[str, Any]]:
    """Yields a complete chat completion as the chunks of a stream. `usage`: with token counts."""
    head = {name: answer[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    counts = {"usage": None} if usage else {}
    prompt = {k: v for k, v in answer.items() if k == "prompt_token_ids"}
    for choice in answer["choices"]:

        def chunk(delta: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
            entry = {"index": choice["index"], "delta": delta, "logprobs": None}  # noqa: B023
            return {**head, "choices": [{**entry, "finish_reason": None, **fields}], **counts}

        message = choice["message"]
        yield {**chunk({"role": "assistant", "content": ""}), **prompt}
        if message.get("reasoning"):
            yield chunk({"reasoning": message["reasoning"]})
        if message["content"] or choice["logprobs"]:
            yield chunk({"content": message["content"] or ""}, logprobs=choice["logprobs"])
        for number, call in enumerate(message.get("tool_calls", ())):
            yield chunk({"tool_calls": [{**call, "index": number}]})
        ending = ("finish_reason", "stop_reason", "token_ids")
        yield chunk({}, **{name: choice[name] for name in ending if name in choice})
    if usage:
        yield {**head, "choices": [], "usage": answer["usage"]}
