"""Serves one agent: queues requests as engine jobs and adds the results to sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from colearn.contract import TokenHistory, TokenRequest
from colearn.contract.types import Action
from colearn.contract.worker import QueueFull, Worker, WorkerStopped
from colearn.deploy.client.protocol.conversation import SentConversation, read_conversation
from colearn.deploy.client.protocol.errors import ServeError, report
from colearn.deploy.client.protocol.limits import ServerLimits
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.client.protocol.tool_call_text import write_answer
from colearn.engines.decoder import Decoder
from colearn.engines.job import Event, Failed, Job

from .agent import ServedAgent
from .completion import read_answer
from .metrics import Metrics
from .requests import check_request, sampling_of, seeds_of, token_history, too_long
from .sessions import ServedSession, Sessions
from .spelling import Spelling

PIECE = 512
"""Number of tokens in a prefill chunk. Small chunks limit how long a long prompt delays the
sequences that are being decoded."""

FAILURES = 3
"""Number of failed steps, without an answer between them, after which the server stops."""


@dataclass(slots=True, eq=False)
class ServedTurn:
    """A request in progress."""

    job: Job
    conversation: SentConversation
    asked: ChatRequest
    session: ServedSession | None
    submitted: bool = False
    committed: bool = False


class Service:
    """The logic behind the routes.

    All methods run in the event loop. If the engine fails repeatedly, `gave_up` is called in the
    event loop.
    """

    def __init__(
        self, agent: ServedAgent, limits: ServerLimits, gave_up: Callable[[], None]
    ) -> None:
        self.agent, self.limits = agent, limits
        self.draining = False
        self.encoding = 0
        """Number of requests that wait for tokenisation."""
        self.turns = 0
        """Number of requests in progress."""
        self._loop = asyncio.get_running_loop()
        self.engine = Decoder(
            agent.base, max_rows=limits.max_batch, memory=limits.cache_bytes, piece=PIECE
        )
        self.worker: Worker[Job, Event] = Worker(
            self.engine,
            max_waiting=limits.max_queue,
            deliver=self._deliver,
            failed=self._failed,
            most_failures=FAILURES,
            gave_up=lambda: self._in_loop(gave_up),
            idle=None,
        )
        self.sessions = Sessions(limits.max_sessions, limits.session_idle)
        self.spelling = Spelling(agent.decoder)
        self.opened_reasoning = agent.decoder.opened_reasoning("")
        """The text with which every prompt opens reasoning; '' if prompts do not open reasoning."""
        self._created = int(time.time())
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self.metrics = Metrics(
            self.engine,
            sessions=lambda: len(self.sessions),
            waiting=lambda: self.encoding + self.worker.waiting,
            limit=limits.cache_bytes,
        )

    def start(self) -> None:
        self.worker.start()

    def close(self) -> None:
        self.worker.close()
        self._encoding.shutdown()

    def seen(self, route: str, status: int) -> None:
        """Counts a request by route and status."""
        self.metrics.requests.labels(route, str(status)).inc()

    def model(self) -> dict[str, Any]:
        """Returns the agent as an entry of /v1/models."""
        return {
            "id": self.agent.name,
            "object": "model",
            "created": self._created,
            "owned_by": "colearn",
        }

    def check_model(self, name: str | None) -> None:
        """Errors: ServeError 404 for a name other than this agent's."""
        if name is not None and name != self.agent.name:
            raise ServeError(
                404,
                f"no such model; this server has '{self.agent.name}'",
                param="model",
                code="model_not_found",
            )

    async def begin(self, body: ChatRequest, receive: Callable[[Event], None]) -> ServedTurn:
        """Builds the job of a request and marks its session busy until `end`.

        Errors: ServeError.
        """
        arrived = time.perf_counter()
        self.check_model(body.model)
        check_request(body, self.limits)
        conversation = read_conversation(body)
        session = None
        if body.session_id is not None:
            session = self.sessions.begin(body.session_id, conversation)
        try:
            history = await self._encode(conversation, session)
            request = TokenRequest(
                agent=self.agent.name,
                history=history,
                continues=None if session is None else session.history,
                sampling=sampling_of(body, self.agent, history),
                seeds=seeds_of(body),
            )
            job = Job(
                request,
                self.agent.decoder,
                keeps=session is not None,
                receive=receive,
                cut_stops=body.stops,
                top_logprobs=body.top_logprobs or 0,
                streams=bool(body.stream),
                arrived=arrived,
            )
            if not self.engine.fits(job):
                raise too_long("the history and max_tokens do not fit the server's cache memory")
        except BaseException:
            if session is not None and body.session_id is not None:
                self.sessions.end(body.session_id, session)
            raise
        self.turns += 1
        return ServedTurn(job, conversation, body, session)

    def submit(self, turn: ServedTurn) -> None:
        """Queues a turn for decoding.

        Errors: ServeError 429 if the queue is full, 503 at shutdown.
        """
        try:
            self.worker.submit(turn.job)
        except QueueFull:
            raise _queue_full() from None
        except WorkerStopped:
            raise ServeError(503, "the server is shutting down") from None
        turn.submitted = True

    def commit(self, turn: ServedTurn) -> None:
        """Records an answered turn in its session and in the metrics."""
        turn.committed = True
        if turn.session is not None:
            (choice,) = turn.job.choices
            assert choice.history is not None, "the answer is not complete"
            chat, opened, tokens = self.agent.decoder, self.opened_reasoning, tuple(choice.tokens)
            last = chat.remembered(Action(opened + chat.decode(tokens), tokens))
            text = write_answer(*read_answer(opened + choice.text, turn.asked))
            self.sessions.commit(turn.session, turn.conversation, choice.history, last, text)
        job = turn.job
        metrics = self.metrics
        metrics.prompt.inc(len(job.request.history))
        metrics.cached.inc(len(job.request.history) - job.prefilled)
        metrics.generated.inc(sum(len(choice.tokens) for choice in job.choices))
        metrics.first.observe(job.first_token or 0.0)
        metrics.duration.observe(time.perf_counter() - job.arrived)

    def end(self, turn: ServedTurn) -> None:
        """Ends a turn, whether answered or not; cancels an incomplete answer."""
        self.turns -= 1
        if not turn.committed:
            turn.job.cancelled = True
        if turn.session is not None and turn.asked.session_id is not None:
            self.sessions.end(turn.asked.session_id, turn.session)

    async def _encode(
        self, conversation: SentConversation, session: ServedSession | None
    ) -> TokenHistory:
        """Tokenises a conversation in the encoding thread. If the request is cancelled, it is
        removed from that thread's queue.

        Errors: ServeError 400 for a text that no tokenisation could fit into the context, 429 if
        the queue is full.
        """
        limit = self.agent.context * self.agent.longest_token
        if conversation.characters > limit:
            raise too_long(
                f"{conversation.characters} characters exceed the context of {self.agent.context} "
                "tokens"
            )
        if self.encoding + self.worker.waiting >= self.limits.max_queue:
            raise _queue_full()

        def over(_: Future[TokenHistory]) -> None:
            self._in_loop(finish)

        def finish() -> None:
            self.encoding -= 1

        self.encoding += 1
        encoded = self._encoding.submit(token_history, self.agent, conversation, session)
        encoded.add_done_callback(over)
        return await asyncio.wrap_future(encoded)

    def _deliver(self, events: Sequence[tuple[Job, Event]]) -> None:
        def spread() -> None:
            for job, event in events:
                job.receive(event)

        self._in_loop(spread)

    def _failed(self, jobs: Sequence[Job], error: BaseException | None) -> None:
        message = "the server is shutting down"
        if error is not None:
            report(error)
            message = "the model failed on this request"
        self._deliver([(job, Failed(message)) for job in jobs])

    def _in_loop(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)


def _queue_full() -> ServeError:
    return ServeError(
        429,
        "the queue is full; try again",
        code="queue_full",
        headers={"retry-after": "1"},
    )
