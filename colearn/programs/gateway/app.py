"""Defines the gateway's HTTP routes: answers and models of each agent, the rewards and the end of
each episode, and a worker's next episode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from colearn.deploy.client.protocol.connected import while_connected
from colearn.deploy.client.protocol.dialects import DIALECTS, Dialect
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.limits import ServerLimits, read_body
from colearn.deploy.client.protocol.schema import ChatRequest, read_fields
from colearn.deploy.client.protocol.writer import chunks

from .payments import NoReward, number
from .program_run import Paid, ProgramRun
from .requests import check_request, invalid

LIMITS = ServerLimits()
_EVENTS = "text/event-stream"
_WAIT = 20.0
"""Number of seconds after which a worker's request for an episode is answered even if no episode is
available."""


_NO_SUCH_PATH = "no such path or method; take each agent's URL as it is given, it ends in /v1"


class Reception(Protocol):
    """The interface through which the routes find and start episodes."""

    ignored: frozenset[str]
    """Sampling fields that have no effect in a request."""

    def find(self, name: str) -> ProgramRun:
        """Errors: ServeError 404 for an unknown episode, 410 for one that has ended."""

    async def next_episodes(self, secret: str, most: int, seconds: float) -> list[ProgramRun]:
        """Waits for episodes for a worker; returns at most `most` episodes, and none after
        `seconds`."""

    def describe(self, live: ProgramRun) -> dict[str, Any]:
        """Returns an episode's item and URLs, as a worker receives them."""


def build_app(server: Reception) -> Starlette:
    """Builds the application."""

    def asked(dialect: Dialect) -> Callable[[Request], Awaitable[Response]]:
        async def chat(request: Request) -> Response:
            live, agent = _live(server, request), request.path_params["agent"]
            try:
                body = dialect.parse(await read_body(request, LIMITS))
                with body.naming_fields():
                    answer = await _answer(server, live, agent, body, request)
            except ServeError as error:
                live.refused = f"the last refused request, to '{agent}': {error.message}"
                raise
            writer = dialect.writer(body)
            if not body.stream:
                return JSONResponse(writer.whole(answer))
            # a training run needs no text before the answer is complete
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            events = [*map(writer.write, chunks(answer, usage=usage)), writer.done()]
            return Response(b"".join(events), media_type=_EVENTS)

        return chat

    async def models(request: Request) -> Response:
        live, agent = _live(server, request), request.path_params["agent"]
        if agent not in live.agents:
            raise ServeError(404, f"no such agent; this program has {', '.join(live.agents)}")
        entry = {"id": agent, "object": "model", "created": 0, "owned_by": "colearn"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def reward(request: Request) -> Response:
        live = _live(server, request)
        live.pay(_paid(await _fields(request)))
        return Response(status_code=204)

    async def end(request: Request) -> Response:
        live = _live(server, request)
        fields = await _fields(request)
        if unknown := sorted(fields.keys() - {"result", "failure"}):
            raise invalid(unknown[0][:80], "is unknown; give result or failure")
        failure = fields.get("failure")
        if isinstance(failure, bool):
            raise invalid("failure", "must be text, or null if the program has not failed")
        live.end(result=fields.get("result"), failure=None if failure is None else str(failure))
        return Response(status_code=204)

    async def following(request: Request) -> Response:
        most = (await _fields(request)).get("most")
        if most is not None and (type(most) is not int or most < 1):
            raise invalid("most", "must be a whole number of at least 1")
        secret = request.path_params["secret"]
        lives = await while_connected(request, server.next_episodes(secret, most or 1, _WAIT))
        if not lives:
            return Response(status_code=204)
        episodes = [server.describe(live) for live in lives]
        return JSONResponse(episodes[0] if most is None else {"episodes": episodes})

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, ServeError)
        return JSONResponse(error.body(), status_code=error.status, headers=error.headers)

    async def unknown(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        body = ServeError(error.status_code, _NO_SUCH_PATH).body()
        return JSONResponse(body, status_code=error.status_code)

    episode = "/episodes/{episode}"
    return Starlette(
        routes=[
            Route(f"{episode}/reward", reward, methods=["POST"]),
            Route(f"{episode}/end", end, methods=["POST"]),
            *(
                Route(f"{episode}/{{agent}}/v1/{path}", asked(dialect), methods=["POST"])
                for path, dialect in DIALECTS.items()
            ),
            Route(f"{episode}/{{agent}}/v1/models", models, methods=["GET"]),
            Route("/workers/{secret}/next", following, methods=["GET", "POST"]),
        ],
        exception_handlers={ServeError: refused, HTTPException: unknown},
    )


async def _answer(
    server: Reception, live: ProgramRun, agent: str, body: ChatRequest, request: Request
) -> Mapping[str, Any]:
    """Waits for the completion that answers a request. Errors: ServeError."""
    check_request(body, server.ignored)
    if body.model != agent and body.model in live.agents:
        raise invalid("model", f"is another agent than this URL's, '{agent}'; use its own URL")
    pending = live.ask(agent, body)
    try:
        return await while_connected(request, asyncio.wrap_future(pending.answer))
    finally:
        live.withdraw(pending)


def _live(server: Reception, request: Request) -> ProgramRun:
    return server.find(request.path_params["episode"])


async def _fields(request: Request) -> dict[str, Any]:
    return read_fields(await read_body(request, LIMITS) or b"{}")


def _paid(fields: dict[str, Any]) -> Paid:
    if unknown := sorted(fields.keys() - {"value", "agent", "call"}):
        raise invalid(unknown[0][:80], "is unknown; give value, and agent or call")
    agent, call = fields.get("agent"), fields.get("call")
    if isinstance(fields.get("value"), bool):
        raise invalid("value", "is a truth value, must be a number")
    try:
        value = number(fields.get("value"), "it")
    except NoReward as error:
        raise invalid("value", str(error)) from None
    for name, target in (("agent", agent), ("call", call)):
        if target is not None and not isinstance(target, str):
            raise invalid(name, "must be text")
    if agent is not None and call is not None:
        raise invalid("call", "give agent or call, not both")
    return Paid(value, agent, call)
