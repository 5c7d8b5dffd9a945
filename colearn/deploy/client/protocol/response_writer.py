"""Answers in OpenAI's Responses protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ServeError
from .events import typed_event
from .schema import ChatRequest
from .writer import Chunk, TranslatingWriter

_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}
"""The type of the one part of an item that has text."""


class ResponseWriter(TranslatingWriter):
    """Writes a response: reasoning, a message and function calls are items of its output."""

    def __init__(self, request: ChatRequest) -> None:
        super().__init__()
        self._request = request
        self._head: dict[str, Any] = {}
        self._items: list[dict[str, Any]] = []
        self._open = False
        self._number = 0
        self._error: dict[str, Any] | None = None

    def answer(self) -> dict[str, Any]:
        asked = self._request
        status = "in_progress"
        if self._error:
            status = "failed"
        elif self.finish:
            status = "incomplete" if self.finish == "length" else "completed"
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        tools = [
            {"type": "function", "parameters": None, "strict": False, **tool.model_dump()}
            for tool in (offer.function for offer in asked.tools or ())
        ]
        return {
            **self._head,
            "object": "response",
            "status": status,
            "error": self._error,
            "incomplete_details": details,
            "instructions": None,
            "metadata": {},
            "output": list(self._items),
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "store": False,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "max_output_tokens": asked.max_tokens,
            "tool_choice": asked.tool_choice or "auto",
            "tools": tools,
            "usage": self._counts(),
            **self.token_ids,
        }

    def _counts(self) -> dict[str, Any] | None:
        if not self.usage:
            return None
        details = self.usage.get("prompt_tokens_details", {})
        cached = {"cached_tokens": details.get("cached_tokens", 0), "cache_write_tokens": 0}
        return {
            "input_tokens": self.usage["prompt_tokens"],
            "input_tokens_details": cached,
            "output_tokens": self.usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.usage["total_tokens"],
        }

    def begin(self, chunk: Chunk) -> list[dict[str, Any]]:
        self._head = {
            "id": chunk["id"],
            "created_at": chunk["created"],
            "model": chunk["model"],
        }
        return [
            self._event("response.created", response=self.answer()),
            self._event("response.in_progress", response=self.answer()),
        ]

    def grow(self, delta: Mapping[str, Any], logprobs: Any) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        if delta.get("reasoning"):
            events += self._text("reasoning", delta["reasoning"], [])
        if delta.get("content") or logprobs:
            entries = (logprobs or {}).get("content") or []
            events += self._text("message", delta.get("content") or "", entries)
        for call in delta.get("tool_calls", ()):
            function = call["function"]
            item = {"call_id": call["id"], "name": function["name"], "arguments": ""}
            events += self._start("function_call", item)
            events.append(
                self._inside("response.function_call_arguments.delta", delta=function["arguments"])
            )
            self._items[-1]["arguments"] = function["arguments"]
        return events

    def end(self) -> list[dict[str, Any]]:
        events = self._close()
        if not any(item["type"] != "reasoning" for item in self._items):
            events += [*self._text("message", "", []), *self._close()]
        response = self.answer()
        return [*events, self._event(f"response.{response['status']}", response=response)]

    def failed(self, error: ServeError) -> bytes:
        body = error.body()
        fields = {name: body["error"][name] for name in ("code", "message", "param")}
        self._error = {"code": "server_error", "message": error.message}
        if self._open:
            self._items[-1]["status"] = "incomplete"
        events = [
            self._event("error", **fields, error=body["error"]),
            self._event("response.failed", response=self.answer()),
        ]
        return b"".join(map(typed_event, events))

    def _text(self, kind: str, text: str, logprobs: list[Any]) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        part = _PARTS[kind]
        if not self._open or self._items[-1]["type"] != kind:
            empty: dict[str, Any] = {"type": part, "text": ""}
            if kind == "message":
                events += self._start(kind, {"role": "assistant", "content": []})
                empty |= {"annotations": [], "logprobs": []}
            else:
                events += self._start(kind, {"summary": [], "content": []})
            events.append(self._inside("response.content_part.added", content_index=0, part=empty))
            self._items[-1]["content"] = [dict(empty)]
        content = self._items[-1]["content"][0]
        content["text"] += text
        more = {}
        if kind == "message":
            content["logprobs"] = [*content["logprobs"], *logprobs]
            more = {"logprobs": logprobs}
        if text or logprobs:
            name = f"response.{part}.delta"
            events.append(self._inside(name, content_index=0, delta=text, **more))
        return events

    def _start(self, kind: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Completes the open item, and opens the next."""
        events = self._close()
        name = f"{kind}_{len(self._items)}_{self._head['id']}"
        item = {"id": name, "type": kind, "status": "in_progress", **fields}
        self._items.append(item)
        self._open = True
        place = len(self._items) - 1
        added = self._event("response.output_item.added", output_index=place, item=dict(item))
        return [*events, added]

    def _close(self) -> list[dict[str, Any]]:
        if not self._open:
            return []
        self._open = False
        item = self._items[-1]
        cut = self.finish == "length" and item["type"] != "function_call"  # calls are whole
        item["status"] = "incomplete" if cut else "completed"
        events = []
        if item["type"] == "function_call":
            events.append(
                self._inside(
                    "response.function_call_arguments.done",
                    name=item["name"],
                    arguments=item["arguments"],
                )
            )
        else:
            part = item["content"][0]
            fields = {k: v for k, v in part.items() if k in ("text", "logprobs")}
            events += [
                self._inside(f"response.{part['type']}.done", content_index=0, **fields),
                self._inside("response.content_part.done", content_index=0, part=part),
            ]
        place = len(self._items) - 1
        return [*events, self._event("response.output_item.done", output_index=place, item=item)]

    def _inside(self, kind: str, **fields: Any) -> dict[str, Any]:
        """An event of the open item."""
        place = len(self._items) - 1
        return self._event(kind, item_id=self._items[-1]["id"], output_index=place, **fields)

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}
