"""Decoder for training, evaluation and serving, with continuous batching.

A step admits waiting jobs, prefills their new tokens (whole or in pieces), samples the first token
of rows whose prompt ends, adds these rows to the running batch and samples one token for every row
of it. The engine starts no thread: the caller drives it by calling `step`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

import torch
from torch import Tensor

from colearn.models.base import Base

from .batch_slab import CachedRow, Slab
from .job import ChoiceEnd, DecodingRow, Done, Event, Job, TokenDrawn, draw_uniforms, likeliest
from .prefill import Entry, Prefill, group
from .prefix_cache import PrefixCache
from .running import Running
from .sampling import TokenDrawing, read

SPARE = 2
"""Ratio of a batch's allocated memory to its used memory. The unused memory is room for additional
rows and new slots."""


class Decoder:
    """Decodes jobs as one batch on one base model.

    `max_rows` is the maximum number of rows that decode at once. `memory` is the maximum size in
    bytes of all KV caches, both of running rows and of histories that may be continued.
    `cache_bytes` is the maximum size in bytes of the KV caches of histories that may be continued.
    `piece` is the maximum number of tokens per row in one prefill pass, so that a long prompt does
    not stall the running rows. None sets no limit. `cuda_graphs`: on CUDA devices, record the
    forward pass of one token once for each shape, and replay the recorded pass.

    Without `piece`, all jobs of a step are prefilled in one pass, in order. The result of `step`
    then depends only on the jobs.
    """

    def __init__(
        self,
        base: Base,
        *,
        max_rows: int | None = None,
        memory: int | None = None,
        cache_bytes: int | None = None,
        piece: int | None = None,
        cuda_graphs: bool = True,
    ) -> None:
        self.base = base
        self.max_rows, self.memory, self.piece = max_rows, memory, piece
        self._most_cached = cache_bytes
        bounded = memory is not None or cache_bytes is not None
        self.prefixes = PrefixCache(base, copies=bounded)
        self.completed = 0
        """Number of jobs answered over the engine's lifetime."""
        self.prefilled_tokens = 0
        """Number of tokens run through the model to extend histories, over the engine's
        lifetime."""
        self.position_bytes = 0 if memory is None else self._measure()
        """Size of the KV cache in bytes per position of a history."""
        self._waiting: deque[Job] = deque()
        self._prefills: deque[Prefill] = deque()
        self._running = Running(base, in_place=not bounded, graphs=cuda_graphs)
        self._drawing: TokenDrawing | None = None
        self._events: list[tuple[Job, Event]] = []
        self._handled: Sequence[Job] = ()
        self._handles_rows = False

    @property
    def running(self) -> int:
        return len(self._running.rows) + sum(prefill.rows for prefill in list(self._prefills))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def jobs(self) -> int:
        """Number of jobs in all phases."""
        prefilling = sum(len(prefill.jobs) for prefill in self._prefills)
        return len(self._waiting) + prefilling + len(self._decoding())

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._prefills or self._running.rows)

    @property
    def at_work(self) -> list[Job]:
        """Jobs in the phase (prefill or decoding) that is running or that has failed."""
        return [*self._handled, *(self._decoding() if self._handles_rows else ())]

    @property
    def cache_bytes(self) -> int:
        """Size in bytes of all KV caches allocated by this engine."""
        return self.prefixes.bytes + self._running_bytes()

    def submit(self, job: Job) -> None:
        """Queue a job; can be called from any thread."""
        self._waiting.append(job)

    def fits(self, job: Job) -> bool:
        """Whether the job, if it runs alone, fits the memory limit."""
        return self.memory is None or self._need(job.rows, job.longest) <= self.memory

    def take_events(self) -> list[tuple[Job, Event]]:
        """Return the events of all jobs since the last call."""
        events, self._events = self._events, []
        return events

    @torch.inference_mode()
    def step(self) -> None:
        """Admit waiting jobs, prefill, and decode one token for every row.

        Errors: any exception from the model; the caller must then drop the jobs in `at_work`.
        """
        for phase in (self._admit, self._prefill, self._decode):
            self._handled, self._handles_rows = (), False
            phase()

    def drop(self, jobs: Iterable[Job]) -> list[Job]:
        """Remove the given jobs, whatever their phase, and return all removed jobs. If one of the
        given jobs is decoding, every job that is decoding is removed."""
        dropped = dict.fromkeys(jobs)
        if any(row.job in dropped for row in self._running.rows):
            dropped |= dict.fromkeys(self._decoding())
            self._running.clear()
        self._prefills = deque(p for p in self._prefills if not dropped.keys() & set(p.jobs))
        for job in dropped:
            with suppress(ValueError):  # most jobs are not waiting
                self._waiting.remove(job)
        return list(dropped)

    def drop_all(self) -> list[Job]:
        prefilled = [job for prefill in self._prefills for job in prefill.jobs]
        return self.drop([*self._decoding(), *prefilled, *self._waiting])

    def _measure(self) -> int:
        """Return the number of KV cache bytes per position, measured by running one token.
        Unsupported models therefore fail early."""
        with torch.inference_mode():
            slab = Slab(1, 1, self.base.device)
            positions = slab.begin(1, 1)
            ids = torch.zeros((1, 1), dtype=torch.long, device=self.base.device)
            mask = slab.mask(positions, positions)
            hidden = self.base.hidden(ids, position_ids=positions, mask=mask, cache=slab)
            self.base.logits(hidden)
        return slab.bytes // slab.capacity

    def _admit(self) -> None:
        """Remove cancelled prefills, then start waiting jobs in order, as long as the limits on
        rows and memory allow."""
        needed = (p for p in self._prefills if not all(job.cancelled for job in p.jobs))
        self._prefills = deque(needed)
        if not self._waiting:
            return
        self._handled = self._admitted()
        entries: list[Entry] = []
        for job in self._handled:
            before = job.request.continues
            cached = None if before is None else self.prefixes.take(before, job.adapter)
            entries.append((job, cached))
        groups = [entries] if self.piece is None and entries else group(entries)
        for entry_group in groups:
            prefill = Prefill(self.base, entry_group, self.piece)
            self._prefills.append(prefill)
            self.prefilled_tokens += sum(job.prefilled for job in prefill.jobs)
        self._make_room()

    def _admitted(self) -> list[Job]:
        """The jobs that start, with those of one adapter side by side (`equal_groups`)."""
        rows, longest = self.running, 0
        if self.memory is not None:
            present = [*self._decoding(), *(job for p in self._prefills for job in p.jobs)]
            longest = max((job.longest for job in present), default=0)
        admitted = []
        for _ in range(len(self._waiting)):
            job = self._waiting[0]
            if not job.cancelled:
                count, length = rows + job.rows, max(longest, job.longest)
                full = self.max_rows is not None and count > self.max_rows
                if self.memory is not None:
                    full = full or self._need(count, length) > self.memory
                if rows and full:
                    break
                rows, longest = count, length
                job.began = time.perf_counter()
                admitted.append(job)
            self._waiting.popleft()
        return sorted(admitted, key=lambda job: job.adapter or "")

    def _prefill(self) -> None:
        """Run one piece of the oldest prefill; once the prefill is complete, its rows join the
        running batch."""
        if not self._prefills:
            return
        prefill = self._prefills[0]
        self._handled = prefill.jobs
        logits = prefill.advance()
        if logits is None:
            return
        self._prefills.popleft()
        owners: list[int] = []
        places: list[int] = []
        rows: list[DecodingRow] = []
        for number, job in enumerate(prefill.jobs):
            if job.cancelled:
                continue
            owners += [number] * job.rows
            places += [prefill.places[number]] * job.rows
            rows += [DecodingRow(job, choice) for choice in range(job.rows)]
        if not rows:
            return
        self._handles_rows = True
        picked = logits[torch.tensor(owners, device=logits.device)]
        drawing = TokenDrawing([row.job.request.sampling for row in rows], self.base.device)
        tokens = self._draw(rows, picked, drawing)
        drawn_at = time.perf_counter()
        for job in prefill.jobs:
            job.first_token = drawn_at - job.arrived
        self._running.join(prefill.slab, places, rows, tokens, prefill.reserve)
        self._drawing = None
        self._leave()

    def _decode(self) -> None:
        """Sample one token for every running row."""
        running = self._running
        if not running.rows:
            return
        self._handles_rows = True
        if running.fit():
            self._make_room()
        if self._drawing is None:
            settings = [row.job.request.sampling for row in running.rows]
            self._drawing = TokenDrawing(settings, self.base.device)
        logits = running.step()
        running.drawn = self._draw(running.rows, logits, self._drawing)
        self._leave()

    def _draw(self, rows: Sequence[DecodingRow], logits: Tensor, drawing: TokenDrawing) -> Tensor:
        """Sample and record the next token of each row; returns tokens [rows]."""
        tokens, scores = drawing.choose(logits, draw_uniforms(rows, logits.device))
        for number, top in likeliest(rows, logits, drawing).items():
            rows[number].choice.top.append(top)
        for row, token, logprob in zip(rows, *read(tokens, scores), strict=True):
            grown = row.push(token, logprob)
            job = row.job
            if job.streams:
                top = row.choice.top[-1] if job.top_logprobs else ()
                self._events.append((job, TokenDrawn(row.number, token, logprob, top, grown)))
        return tokens

    def _leave(self) -> None:
        """Remove rows whose action has ended or whose job is cancelled."""
        running = self._running
        rows = running.rows
        leaving = [n for n, row in enumerate(rows) if row.ended or row.job.cancelled]
        if not leaving:
            return
        for number, cached in zip(leaving, running.cached(leaving), strict=True):
            if not rows[number].job.cancelled:
                self._finish(rows[number], cached)
        running.leave(leaving)
        if self._drawing is not None and not self._drawing.alike:
            self._drawing = None
        if self.memory is not None:
            running.shrink()
        self._make_room()

    def _finish(self, row: DecodingRow, cached: CachedRow) -> None:
        job = row.job
        tail = row.finish()
        if job.keeps and row.choice.history is not None:
            self.prefixes.put(row.choice.history, cached, job.adapter)
        if job.streams:
            self._events.append((job, ChoiceEnd(row.number, tail, row.choice.finish)))
        job.left -= 1
        if not job.left:
            self.completed += 1
            self._events.append((job, Done()))

    def _need(self, rows: int, longest: int) -> int:
        """Return an upper bound on the number of bytes of a batch in which all rows reach length
        `longest`."""
        return SPARE * rows * longest * self.position_bytes

    def _make_room(self) -> None:
        """Evict KV caches of histories that are not being decoded, since running rows have
        priority."""
        if self._most_cached is not None:
            self.prefixes.evict(self._most_cached)
        if self.memory is not None:
            self.prefixes.evict(max(0, self.memory - self._running_bytes()))

    def _running_bytes(self) -> int:
        return self._running.bytes + sum(prefill.slab.bytes for prefill in list(self._prefills))

    def _decoding(self) -> list[Job]:
        """Jobs with rows in the running batch."""
        return list(dict.fromkeys(row.job for row in self._running.rows))
