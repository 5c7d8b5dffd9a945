"""HTTP routes of an agent's server."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from importlib.resources import files

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from colearn.deploy.client.protocol.connected import while_connected
from colearn.deploy.client.protocol.dialects import DIALECTS, Dialect
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.limits import read_body
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.client.protocol.writer import ChatWriter, chunks
from colearn.engines.job import ChoiceEnd, Done, TokenDrawn

from .completion import ChatAnswer
from .guard import refuse
from .service import ServedTurn, Service
from .waiting import JobEvents

READ = ["GET", "HEAD"]
"""Methods of a path that only reads; the HTTP server leaves out the content for HEAD."""


def build_app(service: Service) -> FastAPI:
    """Builds the server's ASGI application. The `Guard` middleware is not included."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    for path, dialect in DIALECTS.items():
        app.post(f"/v1/{path}")(_asked(service, dialect))

    @app.delete("/v1/sessions/{name}")
    async def forget(name: str) -> Response:
        service.sessions.forget(name)
        return Response(status_code=204)

    @app.api_route("/v1/models", methods=READ)
    async def models() -> Response:
        return JSONResponse({"object": "list", "data": [service.model()]})

    @app.api_route("/v1/models/{name}", methods=READ)
    async def model(name: str) -> Response:
        service.check_model(name)
        return JSONResponse(service.model())

    @app.api_route("/v1/agent", methods=READ)
    async def agent() -> Response:
        fields = {"agent", "task", "task_settings", "algorithm", "window", "sampling", "weights"}
        return JSONResponse(service.agent.manifest.model_dump(mode="json", include=fields))

    @app.api_route("/health", methods=READ)
    async def health() -> Response:
        if service.draining:
            return JSONResponse({"status": "shutting down"}, status_code=503)
        return JSONResponse({"status": "ok"})

    @app.api_route("/metrics", methods=READ)
    async def metrics() -> Response:
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.api_route("/", methods=READ)
    async def index() -> Response:
        return _page_file("index.html")

    @app.api_route("/page/{name}", methods=READ)
    async def part(name: str) -> Response:
        return _page_file(name)

    @app.exception_handler(ServeError)
    async def refused(_: Request, error: ServeError) -> Response:
        return refuse(error)

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> Response:
        texts = {
            404: "no such path; ask with POST at " + ", ".join(f"/v1/{path}" for path in DIALECTS),
            405: "this path does not take this method",
        }
        message = texts.get(error.status_code, "the request cannot be served")
        return refuse(ServeError(error.status_code, message, headers=error.headers))

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:
        return refuse(ServeError(500, "internal error"))  # the guard reports it

    return app


@cache
def _page_files() -> dict[str, bytes]:
    """The files of the chat page by name, so that no path is built from a request."""
    folder = files("colearn.deploy.serve") / "page"
    entries = folder.iterdir() if folder.is_dir() else ()
    return {entry.name: entry.read_bytes() for entry in entries if entry.is_file()}


def _page_file(name: str) -> Response:
    """Errors: ServeError 404."""
    content = _page_files().get(name)
    if content is None:
        raise ServeError(404, "no such page", code="not_found")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}
    return Response(content, media_type=kind, headers=headers)


def _asked(service: Service, dialect: Dialect) -> Callable[[Request], Awaitable[Response]]:
    """Returns the route of a protocol."""

    async def asked(request: Request) -> Response:
        return await _chat(service, request, dialect)

    return asked


async def _chat(service: Service, request: Request, dialect: Dialect) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ServeError(
            415, "send JSON, with the header Content-Type: application/json", code="invalid_type"
        )
    body = await read_body(request, service.limits)
    chat_request = dialect.parse(body)
    writer = dialect.writer(chat_request)
    events = JobEvents()
    with chat_request.naming_fields():
        turn = await while_connected(request, service.begin(chat_request, events.receive))
    events.job = turn.job
    try:
        service.submit(turn)
        answer = ChatAnswer(
            service.agent.name,
            turn.job,
            service.spelling if chat_request.logprobs else None,
            chat_request,
            opened=service.opened_reasoning,
            write=writer.write,
        )
        if chat_request.stream:
            return _Stream(service, turn, answer, events, chat_request, writer)
        await while_connected(request, events.done())
        service.commit(turn)
        return JSONResponse(writer.whole(answer.whole()))
    finally:
        if not (chat_request.stream and turn.submitted):
            service.end(turn)


class _Stream(StreamingResponse):
    """Streams an answer as server-sent events; its turn ends even if the stream fails."""

    def __init__(
        self,
        service: Service,
        turn: ServedTurn,
        answer: ChatAnswer,
        events: JobEvents,
        request: ChatRequest,
        writer: ChatWriter,
    ) -> None:
        self._service, self._turn, self._answer, self._events = service, turn, answer, events
        self._writer = writer
        options = request.stream_options
        self._usage = options is not None and bool(options.include_usage)
        super().__init__(
            self._parts(),
            media_type="text/event-stream",
            headers={"cache-control": "no-cache", "x-accel-buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.end(self._turn)

    async def _parts(self) -> AsyncIterator[bytes]:
        answer, usage = self._answer, self._usage
        try:
            if answer.in_one_piece:
                await self._events.done()
                self._service.commit(self._turn)
                whole = map(self._writer.write, chunks(answer.whole(), usage=usage))
                yield b"".join(whole) + self._writer.done()
                return
            yield b"".join(answer.role(n, usage) for n in range(self._turn.job.rows))
            async for event in self._events.events():
                match event:
                    case TokenDrawn():
                        part = answer.grown(event, usage)
                        if part is not None:
                            yield part
                    case ChoiceEnd():
                        yield answer.ended(event.choice, event.finish, usage)
                    case Done():
                        self._service.commit(self._turn)
                        yield (answer.counted() if usage else b"") + self._writer.done()
        except ServeError as error:
            yield self._writer.failed(error)
