"""The gateway's routes: chat completions, rewards and ends, by episode and agent."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from colearn.wire.connected import while_connected
from colearn.wire.errors import ServeError
from colearn.wire.limits import ServerLimits, read_body
from colearn.wire.schema import ChatRequest, parse

from .answer import stream
from .live import Live, Paid

LIMITS = ServerLimits()
_WAIT = 20.0
"""Seconds that a request for the next episode is held."""


class Reception(Protocol):
    """What the routes know of episodes."""

    def find(self, name: str) -> Live:
        """Errors: ServeError 404 for an unknown episode, 410 for one that has ended."""

    async def next_episode(self, secret: str, seconds: float) -> Live | None:
        """An episode for a worker; None if there is none for so long."""

    def told(self, live: Live) -> dict[str, Any]:
        """What a worker is told of an episode."""


def build_app(house: Reception) -> Starlette:
    """The application."""

    async def chat(request: Request) -> Response:
        live, agent = _live(house, request), request.path_params["agent"]
        body = parse(await read_body(request, LIMITS))
        _check(body)
        asked = live.ask(agent, body)
        try:
            answer = await while_connected(request, _wrapped(asked.answer))
        finally:
            live.withdraw(asked)
        if body.stream:
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            return StreamingResponse(stream(answer, usage=usage), media_type="text/event-stream")
        shown = {**answer, "choices": [{**one, **_without(body)} for one in answer["choices"]]}
        return JSONResponse(shown)

    async def models(request: Request) -> Response:
        live, agent = _live(house, request), request.path_params["agent"]
        if agent not in live.agents:
            raise ServeError(404, f"no such agent; there is {', '.join(live.agents)}")
        entry = {"id": agent, "object": "model", "created": 0, "owned_by": "colearn"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def reward(request: Request) -> Response:
        live = _live(house, request)
        live.pay(_paid(await _fields(request)))
        return Response(status_code=204)

    async def end(request: Request) -> Response:
        live = _live(house, request)
        fields = await _fields(request)
        if unknown := sorted(fields.keys() - {"result", "failure"}):
            raise _invalid(unknown[0], "is unknown; give result or failure")
        failure = fields.get("failure")
        live.end(
            result=fields.get("result"), failure=None if failure is None else str(failure)[:300]
        )
        return Response(status_code=204)

    async def following(request: Request) -> Response:
        await read_body(request, LIMITS)
        secret = request.path_params["secret"]
        live = await while_connected(request, house.next_episode(secret, _WAIT))
        return Response(status_code=204) if live is None else JSONResponse(house.told(live))

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, ServeError)
        return JSONResponse(error.body(), status_code=error.status, headers=error.headers)

    async def unknown(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        body = ServeError(error.status_code, "no such path or method").body()
        return JSONResponse(body, status_code=error.status_code)

    episode = "/episodes/{episode}"
    return Starlette(
        routes=[
            Route(f"{episode}/reward", reward, methods=["POST"]),
            Route(f"{episode}/end", end, methods=["POST"]),
            Route(f"{episode}/{{agent}}/v1/chat/completions", chat, methods=["POST"]),
            Route(f"{episode}/{{agent}}/v1/models", models, methods=["GET"]),
            Route("/workers/{secret}/next", following, methods=["GET", "POST"]),
        ],
        exception_handlers={ServeError: refused, HTTPException: unknown},
    )


def _live(house: Reception, request: Request) -> Live:
    return house.find(request.path_params["episode"])


async def _wrapped(answer: Any) -> Any:
    waiting: asyncio.Future[Any] = asyncio.wrap_future(answer)
    return await waiting


def _without(body: ChatRequest) -> dict[str, Any]:
    return {} if body.logprobs else {"logprobs": None}


def _check(body: ChatRequest) -> None:
    if body.n is not None and body.n != 1:
        raise _invalid("n", "must be 1: an episode goes on from one answer")
    if body.top_logprobs:
        raise _invalid("top_logprobs", "is not kept in training; leave it out")
    if body.session_id is not None:
        raise _invalid("session_id", "is not used here; messages that continue a context do")
    if len(body.messages) > LIMITS.max_messages:
        raise _invalid("messages", f"more than {LIMITS.max_messages}")


async def _fields(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await read_body(request, LIMITS) or b"{}")
    except (ValueError, RecursionError):
        raise ServeError(400, "the body is no valid JSON") from None
    if not isinstance(found, dict):
        raise ServeError(400, "the body must be a JSON object")
    return found


def _paid(fields: dict[str, Any]) -> Paid:
    if unknown := sorted(fields.keys() - {"value", "agent", "call"}):
        raise _invalid(unknown[0], "is unknown; give value, and agent or call")
    value, agent, call = fields.get("value"), fields.get("agent"), fields.get("call")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _invalid("value", "must be a number")
    if not math.isfinite(value) or abs(value) > 1e9:
        raise _invalid("value", "must be finite, and at most 1e9 either way")
    for name, given in (("agent", agent), ("call", call)):
        if given is not None and not isinstance(given, str):
            raise _invalid(name, "must be text")
    if agent is not None and call is not None:
        raise _invalid("call", "give agent or call, not both")
    return Paid(float(value), agent, call)


def _invalid(field: str, message: str) -> ServeError:
    return ServeError(400, f"'{field}': {message}", param=field, code="invalid_value")
