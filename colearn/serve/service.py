"""One agent's service: from a request to a job of the engine, and from its end to the session."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from colearn.contract import Sampling
from colearn.errors import ConfigError
from colearn.seeding import derive_seed

from .agent import ServedAgent
from .conversation import Conversation, observe, read_conversation, whole_history
from .engine import Engine, EngineStopped, QueueFull
from .errors import ServeError
from .history import History, WindowExceeded
from .job import Event, Job
from .limits import Limits
from .metrics import Metrics
from .schema import ChatRequest
from .sessions import Session, Sessions
from .spelling import Spelling

_PATHS = {
    "/v1/chat/completions": "chat",
    "/v1/models": "models",
    "/v1/agent": "agent",
    "/health": "health",
    "/metrics": "metrics",
    "/": "page",
}


@dataclass(slots=True, eq=False)
class ServedTurn:
    """A request that is being answered."""

    job: Job
    conversation: Conversation
    name: str | None
    session: Session | None
    submitted: bool = False
    committed: bool = False


class Service:
    """Everything behind the routes. Its methods run in the event loop; `gave_up` is called there
    if the engine cannot go on."""

    def __init__(self, agent: ServedAgent, limits: Limits, gave_up: Callable[[], None]) -> None:
        self.agent, self.limits = agent, limits
        self.draining = False
        self.turns = 0
        """Requests that are being answered."""
        self._loop = asyncio.get_running_loop()
        self.engine = Engine(
            agent.base,
            agent.decoder,
            max_rows=limits.max_batch,
            max_waiting=limits.max_queue,
            limit=limits.cache_bytes,
            deliver=self._deliver,
            gave_up=lambda: self._in_loop(gave_up),
        )
        self.sessions = Sessions(limits.max_sessions, limits.session_idle, self.engine.forget)
        self.spelling = Spelling(agent.decoder.tokenizer)
        self._created = int(time.time())
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self.metrics = Metrics()
        self._count()

    def _count(self) -> None:
        metrics, engine = self.metrics, self.engine
        self._requests = metrics.counter(
            "colearn_requests_total", "Requests by route and status.", "route", "status"
        )
        reading = metrics.reading
        reading("gauge", "colearn_running_rows", "Rows in work.", lambda: engine.running)
        reading("gauge", "colearn_waiting_requests", "Requests that wait.", lambda: engine.waiting)
        reading("gauge", "colearn_sessions", "Sessions.", lambda: len(self.sessions))
        reading(
            "gauge",
            "colearn_sessions_cached",
            "Sessions whose pairs are kept between turns.",
            lambda: len(engine.pairs),
        )
        reading(
            "counter",
            "colearn_sessions_evicted_total",
            "Sessions that lost their pairs to the memory limit.",
            lambda: engine.pairs.evicted,
        )
        reading("gauge", "colearn_cache_bytes", "All pairs.", lambda: engine.cache_bytes)
        reading(
            "gauge", "colearn_cache_limit_bytes", "Their limit.", lambda: self.limits.cache_bytes
        )
        reading(
            "counter",
            "colearn_prefilled_tokens_total",
            "Tokens run through the model to extend histories.",
            lambda: engine.prefilled_tokens,
        )
        self._prompt = metrics.counter("colearn_prompt_tokens_total", "Tokens of prompts.")
        self._cached = metrics.counter(
            "colearn_cached_tokens_total", "Tokens of prompts that were not run again."
        )
        self._generated = metrics.counter("colearn_generated_tokens_total", "Tokens sampled.")
        self._first = metrics.histogram(
            "colearn_time_to_first_token_seconds", "From a request's arrival to its first token."
        )
        self._duration = metrics.histogram(
            "colearn_request_duration_seconds", "From a request's arrival to its last token."
        )

    def start(self) -> None:
        self.engine.start()

    def close(self) -> None:
        self.engine.close()
        self._encoding.shutdown()

    def seen(self, path: str, status: int) -> None:
        """Count a request by its route."""
        route = _PATHS.get(path)
        if route is None:
            first = path.split("/")[1:3]
            route = {"sessions": "sessions", "models": "models"}.get(first[-1], "other")
            route = "page" if first[0] == "page" else route
        self._requests.add(1, route, str(status))

    def model(self) -> dict[str, Any]:
        return {
            "id": self.agent.name,
            "object": "model",
            "created": self._created,
            "owned_by": "colearn",
        }

    def check_model(self, name: str | None) -> None:
        """Errors: ServeError 404 for another than this agent."""
        if name is not None and name != self.agent.name:
            raise ServeError(
                404,
                f"no such model; this server has '{self.agent.name}'",
                param="model",
                code="model_not_found",
            )

    async def begin(self, asked: ChatRequest, receive: Callable[[Event], None]) -> ServedTurn:
        """The job for a request; its session is busy from now until `end`.

        Errors: ServeError.
        """
        arrived = time.perf_counter()
        self.check_model(asked.model)
        self._check(asked)
        conversation = read_conversation(asked.messages)
        session = None
        if asked.session_id is not None:
            session = self.sessions.begin(asked.session_id, conversation)
        try:
            history = await self._loop.run_in_executor(
                self._encoding, self._history, conversation, session
            )
            job = Job(
                history=history,
                sampling=self._sampling(asked, history),
                seeds=_seeds(asked),
                receive=receive,
                cut_stops=asked.stops,
                top_logprobs=asked.top_logprobs or 0,
                streams=bool(asked.stream),
                place=None if session is None else session.place(),
                arrived=arrived,
            )
            if not self.engine.fits(job):
                raise _too_long("the history and max_tokens do not fit the server's cache memory")
        except BaseException:
            if session is not None and asked.session_id is not None:
                self.sessions.end(asked.session_id, session)
            raise
        self.turns += 1
        return ServedTurn(job, conversation, asked.session_id, session)

    def submit(self, turn: ServedTurn) -> None:
        """Errors: ServeError 429 where too many wait, 503 at the end."""
        try:
            self.engine.submit(turn.job)
        except QueueFull:
            raise ServeError(
                429,
                "too many requests wait; try again",
                code="queue_full",
                headers={"retry-after": "1"},
            ) from None
        except EngineStopped:
            raise ServeError(503, "the server is shutting down") from None
        turn.submitted = True

    def commit(self, turn: ServedTurn) -> None:
        """The turn was answered."""
        turn.committed = True
        if turn.session is not None:
            self.sessions.commit(turn.session, turn.conversation, turn.job)
        job = turn.job
        self._prompt.add(len(job.history))
        self._cached.add(len(job.history) - job.prefilled)
        self._generated.add(sum(len(choice.tokens) for choice in job.choices))
        self._first.observe(job.first_token or 0.0)
        self._duration.observe(time.perf_counter() - job.arrived)

    def end(self, turn: ServedTurn) -> None:
        """However it ended; an answer that is not complete is given up."""
        self.turns -= 1
        if not turn.committed:
            turn.job.cancelled = True
        if turn.session is not None and turn.name is not None:
            self.sessions.end(turn.name, turn.session)

    def _check(self, asked: ChatRequest) -> None:
        limits = self.limits
        if len(asked.messages) > limits.max_messages:
            raise ServeError(
                400,
                f"more than {limits.max_messages} messages",
                param="messages",
                code="too_many_messages",
            )
        choices = asked.n or 1
        if choices > limits.max_batch:
            raise _invalid("n", f"at most {limits.max_batch} choices")
        if choices > 1 and asked.session_id is not None:
            raise _invalid("n", "a session has one answer to a turn; leave out n or session_id")
        if asked.top_logprobs is not None and not asked.logprobs:
            raise _invalid("top_logprobs", "needs logprobs: true")
        if asked.stream_options is not None and not asked.stream:
            raise _invalid("stream_options", "needs stream: true")
        for field in ("max_tokens", "max_completion_tokens"):
            if (getattr(asked, field) or 0) > limits.max_tokens:
                raise _invalid(field, f"at most {limits.max_tokens} here")

    def _history(self, conversation: Conversation, session: Session | None) -> History:
        """In the encoding thread."""
        manifest = self.agent.manifest
        own = conversation.system if session is None else session.system
        try:
            chat = self.agent.chat(manifest.system if own is None else own)
        except ConfigError:
            raise _invalid("messages", "the chat template cannot hold this system text") from None
        try:
            if session is None:
                return whole_history(conversation, chat, manifest.window)
            return observe(session.history, chat, conversation.said, session.last, manifest.window)
        except WindowExceeded as error:
            raise _too_long(str(error)) from None

    def _sampling(self, asked: ChatRequest, history: History) -> Sampling:
        own, context = self.agent.sampling, self.agent.context
        room = context - len(history)
        given = asked.max_completion_tokens or asked.max_tokens
        if room < (given or 1):
            raise _too_long(
                f"{len(history)} tokens of messages and {given or 1} of the answer exceed the "
                f"context of {context}"
            )
        return replace(
            own,
            max_tokens=given or min(own.max_tokens, room),
            temperature=own.temperature if asked.temperature is None else asked.temperature,
            top_p=own.top_p if asked.top_p is None else asked.top_p,
            top_k=own.top_k if asked.top_k is None else asked.top_k,
        )

    def _deliver(self, told: Sequence[tuple[Job, Event]]) -> None:
        def spread() -> None:
            for job, event in told:
                job.receive(event)

        self._in_loop(spread)

    def _in_loop(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)


def _seeds(asked: ChatRequest) -> tuple[int, ...]:
    """The first choice draws what the generator draws for the request's seed."""
    first = secrets.randbits(63) if asked.seed is None else asked.seed % 2**64
    others = (derive_seed(first, "choice", number) for number in range(1, asked.n or 1))
    return (first, *others)


def _invalid(field: str, message: str) -> ServeError:
    return ServeError(400, f"'{field}': {message}", param=field, code="invalid_value")


def _too_long(message: str) -> ServeError:
    return ServeError(400, message, param="messages", code="context_length_exceeded")
