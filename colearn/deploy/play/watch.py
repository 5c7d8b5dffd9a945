"""Serves the page of a play session and forwards events to it as they happen. The server is
reachable only from this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from colearn.deploy.client.completion import LONGEST_ACTION
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.listening import listen
from colearn.errors import MissingExtra

from .person import Person
from .seat import seen_from

try:
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request, Response
    from fastapi.responses import JSONResponse, RedirectResponse, StreamingResponse
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from colearn.deploy.client.protocol.connection import protocol
    from colearn.deploy.client.protocol.limits import ServerLimits, read_body
    from colearn.deploy.client.protocol.schema import read_fields
except ModuleNotFoundError as error:
    raise MissingExtra(error.name or "fastapi", "serve") from None

HOST = "127.0.0.1"
LIMITS = ServerLimits(max_body=4 * LONGEST_ACTION + 4096)
"""Limits on requests. The limit on the body allows four bytes for each character of an answer."""
HEARTBEAT = 15.0
"""Number of seconds without an event after which a comment is sent to keep the connection open."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DIGITS = 10
"""Maximum number of digits of an event's number; int() refuses texts of thousands of digits."""
FILES = {
    "watch.html": "text/html",
    "watch.js": "text/javascript",
    "world.js": "text/javascript",
    "page.css": "text/css",
    "watch.css": "text/css",
}


class Watch:
    """Stores all events of a play session, so that a page that is opened late starts from the first
    event.

    Errors: ConfigError if the port is taken.
    """

    def __init__(self, title: str, port: int, people: Mapping[str, Person] | None = None) -> None:
        """people: the person who plays each agent."""
        self.people = people or {}
        self._log: list[dict[str, Any]] = [{"kind": "titled", "title": title}]
        self._news = asyncio.Event()
        self._over = False
        self.socket = listen(HOST, port, field="--watch-port")
        self.url = f"http://{HOST}:{self.socket.getsockname()[1]}/"

    def tell(self, event: dict[str, Any]) -> None:
        """Add an event; call it from the event loop that serves the page."""
        self._log.append(event)
        self._wake()

    def end(self) -> None:
        """Mark the end; each connection closes once it has received every event."""
        self._over = True
        self._wake()

    @property
    def urls(self) -> dict[str, str]:
        """URL of each person's page; without persons, a single URL under ""."""
        return {name: f"{self.url}?seat={quote(name)}" for name in self.people} or {"": self.url}

    def number_after(self, last: str) -> int:
        """Returns the number of the next event for a page; `last` is the number of the last event
        that the page has received. If that number is missing or comes from another play session on
        this port, the page starts from the first event."""
        digits = last.isascii() and last.isdecimal() and len(last) <= _DIGITS
        following = int(last) + 1 if digits else 0
        return following if following <= len(self._log) else 0

    async def follow(self, after: int, seat: str | None = None) -> AsyncIterator[str]:
        """Yield server-sent events, starting with event number `after`. If `seat` is an agent,
        events are filtered for the person who plays it."""
        yield "retry: 1000\n\n"
        while True:
            news = self._news
            while after < len(self._log):
                events = [self._log[after]] if seat is None else seen_from(seat, self._log, after)
                texts = [f"data: {json.dumps(event)}\n\n" for event in events]
                # only the last one has an id, so that a reader who reconnects misses none
                texts[-1:] = [f"id: {after}\n{text}" for text in texts[-1:]]
                after += 1
                for text in texts:
                    yield text
            if self._over:
                yield "event: over\ndata: {}\n\n"
                return
            try:
                await asyncio.wait_for(news.wait(), HEARTBEAT)
            except TimeoutError:
                yield ": waiting\n\n"

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@contextlib.asynccontextmanager
async def watched(
    title: str, port: int = 0, people: Mapping[str, Person] | None = None
) -> AsyncIterator[Watch]:
    """Serve the page at `watch.url` until the block is left; port 0 selects a free port."""
    watch = Watch(title, port, people)
    server = _QuietServer(
        uvicorn.Config(
            watch_app(watch),
            http=protocol(LIMITS.read_timeout),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=3,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[watch.socket]))
    try:
        yield watch
    finally:
        watch.end()
        server.should_exit = True
        await serving


def watch_app(watch: Watch) -> FastAPI:
    """The web application. `/` and `/page/...` serve the page; `/events` serves the events that the
    agent named by `?seat=` may see. `/say` accepts a person's answer as JSON; pages of other
    origins cannot send JSON."""
    app = FastAPI(openapi_url=None)
    # a page of another site whose name resolves to this machine must not read along
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])

    @app.api_route("/", methods=["GET", "HEAD"])
    def page(seat: str | None = None) -> Response:
        if watch.people and seat not in watch.people:
            return RedirectResponse(next(iter(watch.urls.values())), headers=_HEADERS)
        return _file("watch.html")

    @app.api_route("/page/{name}", methods=["GET", "HEAD"])
    def part(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        return _file(name)

    @app.get("/events")
    def events(request: Request, seat: str | None = None) -> StreamingResponse:
        if seat not in (watch.people or {None}):
            raise HTTPException(404, "no person has this seat")
        start = watch.number_after(request.headers.get("last-event-id", ""))
        return StreamingResponse(
            watch.follow(start, seat), media_type="text/event-stream", headers=_HEADERS
        )

    @app.post("/say")
    async def say(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # before the body, which is then never read
            raise HTTPException(415, headers={"connection": "close"})
        try:
            answer = PersonSaid.model_validate(read_fields(await read_body(request, LIMITS)))
        except ValidationError:
            raise HTTPException(422, "give agent, episode and text") from None
        person = watch.people.get(answer.agent)
        if person is None or not person.answer(answer.episode, answer.text):
            raise HTTPException(409, "nobody waits for this answer")
        return Response(status_code=204)

    @app.exception_handler(ServeError)
    async def refused(_: Request, error: ServeError) -> Response:
        return JSONResponse(error.body(), status_code=error.status, headers=error.headers)

    return app


class PersonSaid(BaseModel):
    """A person's answer."""

    model_config = ConfigDict(strict=True)

    agent: str
    episode: int = Field(ge=0, lt=2**31)
    text: str = Field(max_length=LONGEST_ACTION)


class _QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: the surrounding program handles Ctrl-C."""
        yield


_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def _file(name: str) -> Response:
    text = (files("colearn.deploy.serve") / "page" / name).read_text(encoding="utf-8")
    return Response(text, media_type=FILES[name], headers=_HEADERS)
