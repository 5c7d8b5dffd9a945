"""Answers in Anthropic's Messages protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .writer import Chunk, TranslatingWriter

_REASONS = {"length": "max_tokens", "tool_calls": "tool_use"}
_TEXTS = {"text": "content", "thinking": "reasoning"}
"""The field of a chat completion that holds the text of a block."""


class MessageWriter(TranslatingWriter):
    """Writes a message: reasoning, text and tool calls are blocks of its content."""

    def __init__(self) -> None:
        super().__init__()
        self._head: dict[str, Any] = {}
        self._blocks: list[dict[str, Any]] = []
        self._open = False

    def answer(self) -> dict[str, Any]:
        return {
            **self._head,
            "type": "message",
            "role": "assistant",
            "content": list(self._blocks),
            **self._ending(),
            "usage": self._counts(),
            **self.token_ids,
        }

    def _ending(self) -> dict[str, Any]:
        reason = None
        if self.finish:
            reason = _REASONS.get(self.finish, "stop_sequence" if self.stop else "end_turn")
        stop = self.stop if reason == "stop_sequence" else None
        return {"stop_reason": reason, "stop_sequence": stop}

    def _counts(self) -> dict[str, int]:
        cached = self.usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
        return {
            "input_tokens": self.usage.get("prompt_tokens", 0) - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": self.usage.get("completion_tokens", 0),
        }

    def begin(self, chunk: Chunk) -> list[dict[str, Any]]:
        self._head = {"id": chunk["id"], "model": chunk["model"]}
        return [{"type": "message_start", "message": self.answer()}]

    def grow(self, delta: Mapping[str, Any], logprobs: Any) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        for kind in ("thinking", "text"):
            text = delta.get(_TEXTS[kind])
            if text:
                events += self._text(kind, text)
        for call in delta.get("tool_calls", ()):
            function = call["function"]
            start = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}
            events += self._start(start)
            events.append(
                self._delta({"type": "input_json_delta", "partial_json": function["arguments"]})
            )
            self._blocks[-1] = {**start, "input": json.loads(function["arguments"])}
        return events

    def end(self) -> list[dict[str, Any]]:
        events = self._close()
        if not any(block["type"] != "thinking" for block in self._blocks):
            events += [*self._start({"type": "text", "text": ""}), *self._close()]
        delta = {"type": "message_delta", "delta": self._ending(), "usage": self._counts()}
        return [*events, {**delta, **self.token_ids}, {"type": "message_stop"}]

    def _text(self, kind: str, text: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        if not self._open or self._blocks[-1]["type"] != kind:
            signature = {"signature": ""} if kind == "thinking" else {}
            events += self._start({"type": kind, kind: "", **signature})
        self._blocks[-1][kind] += text
        return [*events, self._delta({"type": f"{kind}_delta", kind: text})]

    def _start(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        """Completes the open block, and opens the next."""
        events = self._close()
        self._open = True
        self._blocks.append(block)
        return [
            *events,
            {
                "type": "content_block_start",
                "index": len(self._blocks) - 1,
                "content_block": dict(block),
            },
        ]

    def _close(self) -> list[dict[str, Any]]:
        if not self._open:
            return []
        self._open = False
        events = []
        if self._blocks[-1]["type"] == "thinking":  # clients keep no reasoning without one
            signature = self._blocks[-1]["signature"] = self._head["id"]
            events.append(self._delta({"type": "signature_delta", "signature": signature}))
        return [*events, {"type": "content_block_stop", "index": len(self._blocks) - 1}]

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}
