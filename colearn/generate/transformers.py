"""The default generator: batched decoding on transformers models, caches kept across turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from colearn.contract import Generator, Request, Sampled, Sampling
from colearn.errors import ConfigError
from colearn.history import ChatFormat
from colearn.models.base import Base
from colearn.types import Action, Finish

from .cache import CachedRow, Slab, gather
from .sampling import Sampler


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How an agent speaks through a base model."""

    adapter: str | None
    chat: ChatFormat
    sampling: Sampling
    window: int | None = None


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A history: the pairs in the cache, and the last sampled token, which is not in it yet."""

    cached: CachedRow
    pending: tuple[int, ...]
    visible_from: int
    """First position that the last turn could see."""

    @property
    def length(self) -> int:
        return self.cached.offset + self.cached.length + len(self.pending)


class TransformersGenerator(Generator):
    """All requests of a call run as one batch: one prefill of the new tokens, forks by copying
    rows, one decode in which rows that have ended are dropped.

    Agents with different adapters, sampling and windows share the batch; their caches do not.
    `max_rows` bounds the rows decoded together (memory), None decodes all of a call at once.
    """

    def __init__(
        self, base: Base, voices: Mapping[str, Voice], *, max_rows: int | None = None
    ) -> None:
        self.base = base
        self.voices = dict(voices)
        self.max_rows = max_rows
        self.prefilled_tokens = 0
        """Tokens run through the model to extend histories, over the generator's life."""

    def sync(self) -> None:
        """The learner's weights are these weights."""

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """Errors: ConfigError where new tokens do not fit an agent's context window."""
        if not requests:
            return []
        found: list[list[Sampled]] = []
        for batch in self._batches(requests):
            found += self._generate(batch, greedy)
        return found

    def _batches(self, requests: Sequence[Request]) -> list[list[Request]]:
        batches: list[list[Request]] = [[]]
        rows = 0
        for request in requests:
            count = len(request.seeds)
            if self.max_rows is not None and batches[-1] and rows + count > self.max_rows:
                batches.append([])
                rows = 0
            batches[-1].append(request)
            rows += count
        return batches

    def _generate(self, requests: Sequence[Request], greedy: bool) -> list[list[Sampled]]:
        slab, logits, starts = self._prefill(requests)
        # fork: one row for each seed, all of them sharing the prefill
        owners = [number for number, r in enumerate(requests) for _ in r.seeds]
        rows = torch.tensor(owners, device=self.base.device)
        if len(owners) != len(requests):
            slab = slab.select(rows)
        decoded = _Decoding(self, [requests[n] for n in owners], slab, starts[rows], greedy)
        flat = iter(decoded.run(logits[rows], [s for r in requests for s in r.seeds]))
        return [[next(flat) for _ in request.seeds] for request in requests]

    def _prefill(self, requests: Sequence[Request]) -> tuple[Slab, Tensor, Tensor]:
        """Extend every history by its new tokens; logits [B, V] of what comes next, and the first
        visible position [B] of this turn."""
        device = self.base.device
        new, sources, cuts, starts, edges = [], [], [], [], []
        for request in requests:
            session = request.session
            assert session is None or isinstance(session, CachedSession)
            pending = () if session is None else session.pending
            seen = 0 if session is None else session.length
            edge = 0 if session is None else session.visible_from
            window = self.voices[request.agent].window
            if not request.tokens and not pending:
                raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
            if window is not None and len(request.tokens) > window:
                raise ConfigError(
                    f"agents.{request.agent}.window: an observation of {len(request.tokens)} "
                    f"tokens exceeds the window of {window}; raise it"
                )
            start = edge if window is None else max(edge, seen + len(request.tokens) - window)
            new.append((*pending, *request.tokens))
            sources.append(None if session is None else session.cached)
            cuts.append(0 if session is None else edge - session.cached.offset)
            starts.append(start)
            edges.append((edge, len(pending)))
        counts = torch.tensor([len(tokens) for tokens in new], device=device)
        width = max(len(tokens) for tokens in new)
        most = max(
            len(tokens) + (0 if source is None else source.length - cut)
            for tokens, source, cut in zip(new, sources, cuts, strict=True)
        )
        room = max(self.voices[r.agent].sampling.max_tokens for r in requests)
        slab = gather(sources, cuts, most + max(room, width), device)
        positions = slab.begin(width, int(slab.lengths.max()) + width)
        # the last sampled token still belongs to the turn before, with that turn's window
        visible = torch.tensor(
            [
                [edge] * held + [start] * (width - held)
                for (edge, held), start in zip(edges, starts, strict=True)
            ],
            device=device,
        )
        ids = torch.tensor(
            [[*tokens, *[0] * (width - len(tokens))] for tokens in new], device=device
        )
        adapters = [self.voices[request.agent].adapter for request in requests]
        with self.base.using(adapters):
            hidden = self.base.hidden(
                ids, position_ids=positions, mask=slab.mask(positions, visible), cache=slab
            )
            last = hidden[torch.arange(len(new), device=device), counts - 1]
            logits = self.base.logits(last)
        slab.lengths = slab.lengths + counts
        self.prefilled_tokens += sum(len(tokens) for tokens in new)
        return slab, logits, torch.tensor(starts, device=device)


class _Decoding:
    """One call's decode loop over R rows, of which ever fewer are active."""

    def __init__(
        self,
        generator: TransformersGenerator,
        requests: Sequence[Request],
        slab: Slab,
        starts: Tensor,
        greedy: bool,
    ) -> None:
        self.base, self.greedy = generator.base, greedy
        self.voices = [generator.voices[request.agent] for request in requests]
        self.slab, self.starts = slab, starts
        self.adapters = [voice.adapter for voice in self.voices]  # of the slab's rows
        device = self.base.device
        self.limits = torch.tensor([v.sampling.max_tokens for v in self.voices], device=device)
        widest = max(len(voice.chat.end_ids) for voice in self.voices)
        self.ends = torch.tensor(
            [
                [*voice.chat.end_ids, *[-1] * (widest - len(voice.chat.end_ids))]
                for voice in self.voices
            ],
            device=device,
        )
        self.stops = any(voice.sampling.stop for voice in self.voices)

    def run(self, logits: Tensor, seeds: Sequence[int]) -> list[Sampled]:
        """Decode from the first tokens' logits [R, V] until every row has ended."""
        device, count = self.base.device, len(self.voices)
        sampler = Sampler([v.sampling for v in self.voices], seeds, device, self.greedy)
        longest = int(self.limits.max())
        tokens = torch.zeros((count, longest), dtype=torch.long, device=device)
        logprobs = torch.zeros((count, longest), device=device)
        lengths = torch.zeros(count, dtype=torch.long, device=device)
        place: list[CachedRow | None] = [None] * count
        stopped: set[int] = set()
        active = torch.arange(count, device=device)  # rows of this call ...
        held = active  # ... and the rows of the slab that hold them
        for step in range(longest):
            drawn, scores = sampler.draw(logits, active, step)
            tokens[active, step], logprobs[active, step] = drawn, scores
            lengths[active] = step + 1
            over = (drawn[:, None] == self.ends[active]).any(-1) | (step + 1 >= self.limits[active])
            if self.stops:
                over |= self._stopped(tokens, active, step, over, stopped)
            if bool(over.any()):
                keep = ~over
                self._settle(place, active[over], held[over])
                active, held, drawn = active[keep], held[keep], drawn[keep]
                if not len(active):
                    break
            if len(active) <= self.slab.rows // 2:
                self.slab = self.slab.select(held)
                self.adapters = [self.voices[number].adapter for number in active.tolist()]
                held = torch.arange(len(active), device=device)
            logits = self._forward(drawn, active, held)
        return self._results(tokens.cpu(), logprobs.cpu(), lengths.tolist(), place, stopped)

    def _forward(self, drawn: Tensor, active: Tensor, held: Tensor) -> Tensor:
        """One token for each active row; ended rows still in the slab are computed and ignored."""
        slab, device = self.slab, self.base.device
        ids = torch.zeros((slab.rows, 1), dtype=torch.long, device=device)
        ids[held, 0] = drawn
        starts = torch.zeros(slab.rows, dtype=torch.long, device=device)
        starts[held] = self.starts[active]
        positions = slab.begin(1, int(slab.lengths.max()) + 1)
        with self.base.using(self.adapters):
            hidden = self.base.hidden(
                ids,
                position_ids=positions,
                mask=slab.mask(positions, starts[:, None]),
                cache=slab,
            )
            logits = self.base.logits(hidden[held, -1])
        slab.lengths[held] += 1
        return logits

    def _settle(self, place: list[CachedRow | None], numbers: Tensor, rows: Tensor) -> None:
        """Note where the pairs of rows that have just ended lie."""
        lengths, offsets = self.slab.lengths.tolist(), self.slab.offsets.tolist()
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            place[number] = CachedRow(self.slab, row, lengths[row], offsets[row])

    def _stopped(
        self, tokens: Tensor, active: Tensor, step: int, over: Tensor, stopped: set[int]
    ) -> Tensor:
        hits = []
        for number, ended in zip(active.tolist(), over.tolist(), strict=True):
            voice = self.voices[number]
            hit = False
            if voice.sampling.stop and not ended:
                text = voice.chat.decode(tuple(tokens[number, : step + 1].tolist()))
                hit = any(stop in text for stop in voice.sampling.stop)
            if hit:
                stopped.add(number)
            hits.append(hit)
        return torch.tensor(hits, device=over.device)

    def _results(
        self,
        tokens: Tensor,
        logprobs: Tensor,
        lengths: list[int],
        place: list[CachedRow | None],
        stopped: set[int],
    ) -> list[Sampled]:
        starts = self.starts.tolist()
        results = []
        for number, voice in enumerate(self.voices):
            ids = tuple(tokens[number, : lengths[number]].tolist())
            finish: Finish = "length"
            if number in stopped:
                finish = "stop"
            elif ids[-1] in voice.chat.end_ids:
                finish = "end"
            cached = place[number]
            assert cached is not None
            action = Action(
                text=voice.chat.decode(ids),
                tokens=ids,
                logprobs=tuple(logprobs[number, : lengths[number]].tolist()),
                finish=finish,
            )
            results.append(Sampled(action, CachedSession(cached, ids[-1:], starts[number])))
        return results
