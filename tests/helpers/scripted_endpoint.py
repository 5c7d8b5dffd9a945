"""An OpenAI-compatible server that speaks a script and can fail on purpose."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from threaded_server import ThreadedServer

Speak = Callable[[list[dict[str, str]], int | None], str]
Fault = Callable[["ScriptedEndpoint"], Response | None]
"""What one request meets instead of an answer; None answers after all."""


def count_words(messages: list[dict[str, str]], seed: int | None) -> str:
    """An answer that depends on everything said so far, and on the seed."""
    return f"{sum(len(m['content'].split()) for m in messages)} words, seed {seed}"


def status(
    code: int, message: str = "on purpose", *, name: str | None = None, **headers: str
) -> Fault:
    """An error in the OpenAI format; `name` is its code there."""
    return lambda endpoint: _error(code, message, name, headers)


def cut_off(endpoint: ScriptedEndpoint) -> Response:
    """Closes the connection in the middle of its answer."""

    async def half() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(0.05)
        raise ConnectionError("on purpose")

    return StreamingResponse(half(), headers={"content-length": "100"})


@dataclass
class ScriptedEndpoint:
    """The server and what it has seen. `faults` and `late_faults` are used up one a request, the
    late ones after the answer was worked out: the session has moved on, the answer is lost."""

    name: str = "ada"
    speak: Speak = count_words
    owned_by: str = "colearn"
    models: list[str] | None = None
    token: str | None = None
    delay: float = 0.0
    """Seconds that every answer takes."""
    faults: list[Fault] = field(default_factory=list)
    late_faults: list[Fault] = field(default_factory=list)
    together: int = 0
    """How many requests have to arrive before the first is answered."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of all chat requests, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    sessions: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    url: str = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator[ScriptedEndpoint]:
        self.server = ThreadedServer(self.app())
        with self.server.serving() as self.url:
            yield self

    def stop(self) -> None:
        """Close every connection and answer nobody any more."""
        self.server.stop()

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/v1/models")
        def models(request: Request) -> Response:
            if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
                return _error(401, "wrong token", "invalid_api_key", {})
            names = [self.name] if self.models is None else self.models
            return JSONResponse({"data": [{"id": n, "owned_by": self.owned_by} for n in names]})

        @app.delete("/v1/sessions/{session}")
        def forget(session: str) -> Response:
            self.deleted.append(session)
            return Response(status_code=204 if self.sessions.pop(session, None) else 404)

        @app.post("/v1/chat/completions")
        async def chat(request: Request) -> Response:
            body = await request.json()
            self.requests.append(body)
            self.headers.append(dict(request.headers))
            await asyncio.sleep(self.delay)
            while len(self.requests) < self.together:
                await asyncio.sleep(0.005)
            if self.faults:
                failed = self.faults.pop(0)(self)
                if failed is not None:
                    return failed
            answer = self._answer(body)
            if self.late_faults:
                failed = self.late_faults.pop(0)(self)
                if failed is not None:
                    return failed
            return answer

        return app

    def _answer(self, body: dict[str, Any]) -> Response:
        messages = body["messages"]
        session = body.get("session_id")
        if session is not None:
            known = self.sessions.get(session)
            spoken = any(message["role"] == "assistant" for message in messages)
            if known is None and spoken:
                return _error(404, "no such session", "session_not_found", {})
            if known is not None and spoken and messages[:-1] != known:
                return _error(409, "another history", "session_conflict", {})
            if known is not None and not spoken:
                messages = [*known, *messages]
        text = self.speak(messages, body.get("seed"))
        if session is not None:
            self.sessions[session] = [*messages, {"role": "assistant", "content": text}]
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        if body.get("return_token_ids"):
            choice["token_ids"] = list(text.encode())
        usage = {"prompt_tokens": 1, "completion_tokens": len(text.encode())}
        return JSONResponse({"choices": [choice], "usage": usage})


def _error(code: int, message: str, name: str | None, headers: dict[str, str]) -> Response:
    error = {"message": message, "type": "error", "param": None, "code": name}
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return JSONResponse({"error": error}, status_code=code, headers=named)
