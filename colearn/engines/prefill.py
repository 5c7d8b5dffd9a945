"""Prefill: runs the new tokens of several histories through the model, whole or in pieces."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from colearn.models.base import Base

from .batch_slab import CachedRow, gather
from .job import Job

AREA = 8192
"""Maximum size of a group that is prefilled in pieces. The size is the number of rows times the
number of tokens per row, padding included."""

Entry = tuple[Job, CachedRow | None]
"""A job and the cached part of its history."""


class Prefill:
    """Extends the histories of a group of jobs together.

    `piece` is the maximum number of tokens per row in one forward pass. With None, all tokens run
    in one pass. That pass also allocates slots for the longest action, unless histories are forked.
    A history without a cache is computed completely, and each of its turns uses the context window
    of that turn. Without pieces, equal histories are computed once.
    """

    def __init__(self, base: Base, entries: Sequence[Entry], piece: int | None) -> None:
        self.base, self.piece = base, piece
        self.jobs = [job for job, _ in entries]
        self.places: list[int] = []
        """Row of each job's history in the group."""
        if piece is None:
            entries, self.places = _different(entries)
        else:
            self.places = list(range(len(entries)))
        sources = [source for _, source in entries]
        new, visible, cuts = [], [], []
        for job, source in entries:
            start = 0 if source is None else source.end
            new.append(job.request.history.ids[start:].tolist())
            visible.append(job.request.history.visibility(start))
            cuts.append(0 if source is None else visible[-1][0] - source.offset)
            job.prefilled = len(new[-1])
        counts = [len(tokens) for tokens in new]
        kept_lengths = [
            0 if s is None else s.length - cut for s, cut in zip(sources, cuts, strict=True)
        ]
        width = max(counts)
        capacity = max(kept_lengths) + width
        self.reserve = 0
        """Number of slots of each fork beyond its history."""
        if piece is None:
            room = max(job.request.sampling.max_tokens for job in self.jobs)
            if self.rows == len(entries):
                capacity = max(
                    capacity, max(map(sum, zip(kept_lengths, counts, strict=True))) + room
                )
            else:
                self.reserve = room
        self.slab = gather(sources, cuts, capacity, base.device)
        self._ids = _padded(new, width, base.device)
        self._visible = _padded(visible, width, base.device)
        self._adapters = [job.adapter for job, _ in entries]
        self._counts = counts
        self._ends = [*map(sum, zip(kept_lengths, counts, strict=True))]
        self._done = 0
        self._last: Tensor | None = None

    @property
    def rows(self) -> int:
        """Number of rows that decode after this prefill."""
        return sum(job.rows for job in self.jobs)

    def advance(self) -> Tensor | None:
        """Run one piece. Returns next-token logits [jobs, V] after the last piece, else None."""
        start, slab = self._done, self.slab
        end = self._ids.shape[1] if self.piece is None else start + self.piece
        ids, visible = self._ids[:, start:end], self._visible[:, start:end]
        width = ids.shape[1]
        positions = slab.begin(width, max(slab.lengths) + width)
        last = [(row, end - 1 - start) for row, end in enumerate(self._counts)]
        last = [(row, column) for row, column in last if 0 <= column < width]
        ending, column = torch.tensor(last, dtype=torch.long, device=ids.device).view(-1, 2).T
        with self.base.using(self._adapters), self.base.packed():
            hidden = self.base.hidden(
                ids, position_ids=positions, mask=slab.mask(positions, visible), cache=slab
            )
            if self._last is None:
                self._last = hidden.new_zeros(len(self._adapters), hidden.shape[-1])
            self._last[ending] = hidden[ending, column]
            self._done += width
            slab.lengths = [length + width for length in slab.lengths]
            if self._done < self._ids.shape[1]:
                return None
            slab.lengths = self._ends
            return self.base.logits(self._last)[self.places]


def _different(entries: Sequence[Entry]) -> tuple[list[Entry], list[int]]:
    """Return the entries without duplicate histories and, for each given entry, its index in the
    returned list."""
    rows: dict[Hashable, int] = {}
    distinct: list[Entry] = []
    places: list[int] = []
    for job, source in entries:
        key: Hashable = job
        if source is None:
            key = (job.adapter, job.request.history.ids.tobytes(), job.request.history.turns)
        if key not in rows:
            rows[key] = len(distinct)
            distinct.append((job, source))
        places.append(rows[key])
    return distinct, places


def _padded(rows: Sequence[list[int]], width: int, device: torch.device) -> Tensor:
    """Return a tensor [rows, width] of the rows, padded with 0."""
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)


def group(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Groups jobs of similar length, to limit padding."""

    def new(entry: Entry) -> int:
        job, source = entry
        return len(job.request.history) - (0 if source is None else source.end)

    groups: list[list[Entry]] = []
    for entry in sorted(entries, key=new):
        if groups and (len(groups[-1]) + 1) * new(entry) <= AREA:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups
