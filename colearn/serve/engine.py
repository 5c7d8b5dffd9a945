"""Continuous batching: one thread that decodes all running requests together, a token a step.

Between two steps new requests are admitted and a piece of their prompts is run; their rows then
join the batch, and rows that have ended leave it. Tokens are those of `TransformersGenerator` for
the same history and seed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from colearn.generate.cache import CachedRow, Slab
from colearn.generate.sampling import Drawing
from colearn.history import ChatFormat
from colearn.models.base import Base

from .errors import report
from .job import Choice, ChoiceEnd, Done, Event, Failed, Job, Token
from .pairs import PairStore
from .prefill import Prefill, group
from .row import Row, draw_uniforms, likeliest, make_drawing
from .slab import RunningSlab, slab_bytes

Deliver = Callable[[Sequence[tuple[Job, Event]]], None]

SPARE = 2
"""What is allocated of a batch, over what is in use: spare rows, and slots to grow into."""
FAILURES = 3
"""Steps that fail, with no answer completed between them, before the engine gives up."""


class QueueFull(Exception):
    """More requests wait than the engine lets wait."""


class EngineStopped(Exception):
    """The engine has ended or has given up."""


class Engine:
    """The model of one agent, and the thread that runs it.

    `deliver` is called in the engine's thread, once a step, with what the jobs are told; `gave_up`
    once, when the engine cannot go on. `limit` bounds the bytes of all pairs, those of running
    requests and those kept for sessions.
    """

    def __init__(
        self,
        base: Base,
        chat: ChatFormat,
        *,
        max_rows: int,
        max_waiting: int,
        limit: int,
        deliver: Deliver,
        gave_up: Callable[[], None],
    ) -> None:
        self.base, self.chat = base, chat
        self.max_rows, self.max_waiting, self.limit = max_rows, max_waiting, limit
        self.pairs = PairStore(base.device)
        self.prefilled_tokens = 0
        """Tokens run through the model to extend histories, over the engine's life."""
        self._deliver, self._gave_up = deliver, gave_up
        self._waiting: deque[Job] = deque()
        self._forgotten: deque[int] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._failures = 0
        self._slab = RunningSlab(base.device)
        self._rows: list[Row] = []
        self._drawn = torch.zeros(0, dtype=torch.long, device=base.device)
        self._starts = torch.zeros(0, dtype=torch.long, device=base.device)
        self._drawing: Drawing | None = None
        self._prefills: deque[Prefill] = deque()
        self._told: list[tuple[Job, Event]] = []
        self._ends = chat.end_ids
        self.pair_bytes = self._measure()
        """Bytes of one position of one history."""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    # called from other threads

    @property
    def running(self) -> int:
        return len(self._rows) + sum(prefill.rows for prefill in list(self._prefills))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def cache_bytes(self) -> int:
        """All pairs that are allocated."""
        return self.pairs.bytes + self._running_bytes()

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Errors: QueueFull, EngineStopped."""
        with self._wake:
            if self._closing:
                raise EngineStopped
            if len(self._waiting) >= self.max_waiting:
                raise QueueFull
            self._waiting.append(job)
            self._wake.notify()

    def forget(self, key: int) -> None:
        """Free the pairs of a session."""
        with self._wake:
            self._forgotten.append(key)
            self._wake.notify()

    def fits(self, job: Job) -> bool:
        """Whether the memory limit lets the job run at all."""
        return self._need(job.rows, job.longest) <= self.limit

    def close(self) -> None:
        """End the thread; jobs that still run are told that they failed."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is not None:
            self._thread.join()

    # the engine's thread

    @torch.inference_mode()
    def _measure(self) -> int:
        """Runs one token, so that a model which cannot be served fails at the start."""
        slab = Slab(1, 1, self.base.device)
        positions = slab.begin(1, 1)
        ids = torch.zeros((1, 1), dtype=torch.long, device=self.base.device)
        self.base.logits(
            self.base.hidden(
                ids, position_ids=positions, mask=slab.mask(positions, positions), cache=slab
            )
        )
        return slab_bytes(slab) // slab.capacity

    @torch.inference_mode()
    def _run(self) -> None:
        while self._failures < FAILURES and self._wait():
            for phase in (self._admit, self._prefill, self._decode):
                concerned: list[Job] = []
                try:
                    phase(concerned)
                except Exception as error:  # noqa: BLE001 - its requests fail, the server does not
                    self._failures += 1
                    report(error)
                    self._fail(concerned, "the model failed on this request")
            self._tell()
        with self._wake:
            self._closing = True
        left = [*self._jobs(), *(job for prefill in self._prefills for job in prefill.jobs)]
        self._fail([*left, *self._waiting], "the server is shutting down")
        self._tell()
        if self._failures >= FAILURES:
            self._gave_up()

    def _wait(self) -> bool:
        """Until there is something to do; False at the end."""
        with self._wake:
            while not (
                self._closing or self._waiting or self._forgotten or self._rows or self._prefills
            ):
                self._wake.wait()
            return not self._closing

    def _admit(self, concerned: list[Job]) -> None:
        """Take waiting jobs in their order, as many as rows and memory allow."""
        while self._forgotten:
            self.pairs.forget(self._forgotten.popleft())
        taken: list[tuple[Job, CachedRow | None]] = []
        for job in self._admitted():
            concerned.append(job)
            taken.append((job, None if job.place is None else self.pairs.take(job.place)))
        for entries in group(taken):
            prefill = Prefill(self.base, [job for job, _ in entries], [row for _, row in entries])
            self._prefills.append(prefill)
            self.prefilled_tokens += sum(job.prefilled for job in prefill.jobs)
        self._make_room()

    def _admitted(self) -> list[Job]:
        rows = self.running
        longest = max((job.longest for job in self._jobs()), default=0)
        for prefill in self._prefills:
            longest = max(longest, *(job.longest for job in prefill.jobs))
        found = []
        with self._wake:
            for _ in range(len(self._waiting)):
                job = self._waiting[0]
                if not job.cancelled:
                    count, most = rows + job.rows, max(longest, job.longest)
                    full = count > self.max_rows or self._need(count, most) > self.limit
                    if rows and full:
                        break
                    rows, longest = count, most
                    found.append(job)
                self._waiting.popleft()
        return found

    def _prefill(self, concerned: list[Job]) -> None:
        """A piece of the oldest group; when it is done its rows join the batch."""
        if not self._prefills:
            return
        prefill = self._prefills[0]
        concerned += prefill.jobs
        logits = prefill.advance()
        if logits is None:
            return
        self._prefills.popleft()
        owners, rows = [], []
        for number, job in enumerate(prefill.jobs):
            if job.cancelled:
                continue
            job.choices = [Choice() for _ in job.seeds]
            owners += [number] * job.rows
            rows += [Row(job, choice, self.chat) for choice in range(job.rows)]
        if not rows:
            return
        concerned += self._jobs()
        self._slab.join(prefill.slab, owners)
        self._rows += rows
        self._drawing = None
        drawing = make_drawing(rows, self.base.device)
        drawn = self._draw(rows, logits[torch.tensor(owners, device=logits.device)], drawing)
        self._drawn = torch.cat([self._drawn, drawn])
        self._leave()

    def _decode(self, concerned: list[Job]) -> None:
        """One token for every row of the batch."""
        if any(row.job.cancelled for row in self._rows):
            self._leave()
        if not self._rows:
            return
        concerned += self._jobs()
        slab = self._slab
        used = int(slab.lengths.max()) + 1
        if slab.fit(used):
            self._make_room()
        if self._drawing is None:
            self._drawing = make_drawing(self._rows, self.base.device)
            starts = [row.visible_from for row in self._rows]
            self._starts = torch.tensor(starts, device=self.base.device)
        positions = slab.begin(1, used)
        hidden = self.base.hidden(
            self._drawn[:, None],
            position_ids=positions,
            mask=slab.mask(positions, self._starts[:, None]),
            cache=slab,
        )
        logits = self.base.logits(hidden[:, -1])
        slab.lengths = slab.lengths + 1
        self._drawn = self._draw(self._rows, logits, self._drawing)
        self._leave()

    def _draw(self, rows: Sequence[Row], logits: Tensor, drawing: Drawing) -> Tensor:
        """Draw and note the next token of each row; [rows] tokens."""
        device = logits.device
        each = torch.arange(len(rows), device=device)
        drawn, scores = drawing.choose(logits, each, draw_uniforms(rows, device))
        tops = likeliest(rows, logits, drawing)
        now = time.perf_counter()
        noted = zip(rows, drawn.tolist(), scores.tolist(), strict=True)
        for number, (row, token, logprob) in enumerate(noted):
            if row.job.first_token is None:
                row.job.first_token = now - row.job.arrived
            top = tops.get(number, ())
            grown = row.push(token, logprob, top, self._ends)
            if row.job.streams:
                self._told.append((row.job, Token(row.number, token, logprob, top, grown)))
        return drawn

    def _leave(self) -> None:
        """Take rows that have ended out of the batch, the pairs of sessions into their store."""
        before = len(self._rows)
        for number in reversed(range(before)):
            row = self._rows[number]
            if not (row.ended or row.job.cancelled):
                continue
            if row.ended and not row.job.cancelled:
                if row.job.place is not None:
                    self.pairs.put(row.job.place, self._slab.held(number), row.visible_from)
                self._finish(row)
            self._slab.leave(number)
            self._rows[number] = self._rows[-1]
            self._drawn[number] = self._drawn[-1]
            self._rows.pop()
            self._drawn = self._drawn[:-1]
        if len(self._rows) != before:
            self._drawing = None
            self._slab.shrink()
            self._make_room()

    def _finish(self, row: Row) -> None:
        self._failures = 0
        job, choice = row.job, row.choice
        rest = "" if row.text is None else row.text.finish()
        choice.text = self.chat.decode(tuple(choice.tokens)) if row.text is None else row.text.text
        if job.streams:
            self._told.append((job, ChoiceEnd(row.number, rest, choice.finish)))
        job.left -= 1
        if not job.left:
            self._told.append((job, Done()))

    def _need(self, rows: int, longest: int) -> int:
        """Bytes that rows of a batch take at most, should all become as long as the longest."""
        return SPARE * rows * longest * self.pair_bytes

    def _make_room(self) -> None:
        """Running requests come before what is kept for later."""
        self.pairs.shrink(max(0, self.limit - self._running_bytes()))

    def _running_bytes(self) -> int:
        return self._slab.bytes + sum(slab_bytes(prefill.slab) for prefill in list(self._prefills))

    def _jobs(self) -> list[Job]:
        """Jobs that have rows in the batch."""
        return list(dict.fromkeys(row.job for row in self._rows))

    def _fail(self, jobs: Iterable[Job], message: str) -> None:
        """Drop jobs wherever they are; where the batch is touched, all of it."""
        failed = dict.fromkeys(jobs)
        if any(row.job in failed for row in self._rows):
            failed |= dict.fromkeys(self._jobs())
            self._rows, self._drawing = [], None
            self._drawn = self._drawn[:0]
            self._slab.clear()
        self._prefills = deque(p for p in self._prefills if not failed.keys() & set(p.jobs))
        self._told += [(job, Failed(message)) for job in failed]

    def _tell(self) -> None:
        if self._told:
            told, self._told = self._told, []
            self._deliver(told)
