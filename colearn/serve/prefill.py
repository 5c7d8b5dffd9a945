"""Running the new tokens of several histories through the model, a piece at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from colearn.generate.cache import CachedRow, gather
from colearn.models.base import Base

from .job import Job

PIECE = 512
"""Tokens of a row in one forward pass: rows that decode wait no longer for a long prompt."""
AREA = 8192
"""Rows times tokens of one group, padding included."""


class Prefill:
    """A group of jobs whose histories are extended together.

    A history without `source` is computed whole, each turn under the window it had.
    """

    def __init__(
        self, base: Base, jobs: Sequence[Job], sources: Sequence[CachedRow | None]
    ) -> None:
        self.base, self.jobs = base, list(jobs)
        device = base.device
        starts = [0 if s is None else s.offset + s.length for s in sources]
        new = [job.history.ids[start:] for job, start in zip(jobs, starts, strict=True)]
        counts = [len(tokens) for tokens in new]
        width = max(counts)
        for job, count in zip(jobs, counts, strict=True):
            job.prefilled = count
        kept = max(0 if source is None else source.length for source in sources)
        self.slab = gather(sources, [0] * len(new), kept + width, device)
        self._ids = torch.zeros((len(new), width), dtype=torch.long)
        self._visible = torch.zeros((len(new), width), dtype=torch.long)
        for row, (job, start, tokens) in enumerate(zip(jobs, starts, new, strict=True)):
            self._ids[row, : len(tokens)] = torch.tensor(tokens.tolist())
            self._visible[row, : len(tokens)] = torch.tensor(job.history.visibility(start))
        self._ids, self._visible = self._ids.to(device), self._visible.to(device)
        self._counts = torch.tensor(counts, device=device)
        self._ends = self.slab.lengths + self._counts
        self._done = 0
        self._last: list[Tensor | None] = [None] * len(new)

    @property
    def rows(self) -> int:
        """Rows that will decode after this."""
        return sum(job.rows for job in self.jobs)

    def advance(self) -> Tensor | None:
        """One piece; logits [jobs, V] of what comes next once all is done, else None."""
        ids = self._ids[:, self._done : self._done + PIECE]
        width = ids.shape[1]
        positions = self.slab.begin(width, int(self.slab.lengths.max()) + width)
        visible = self._visible[:, self._done : self._done + PIECE]
        hidden = self.base.hidden(
            ids,
            position_ids=positions,
            mask=self.slab.mask(positions, visible),
            cache=self.slab,
        )
        for row, last in enumerate((self._counts - 1 - self._done).tolist()):
            if 0 <= last < width:
                self._last[row] = hidden[row, last].clone()
        self.slab.lengths = self.slab.lengths + width
        self._done += width
        if self._done < self._ids.shape[1]:
            return None
        self.slab.lengths = self._ends
        return self.base.logits(torch.stack([last for last in self._last if last is not None]))


def group(jobs: Sequence[tuple[Job, CachedRow | None]]) -> list[list[tuple[Job, CachedRow | None]]]:
    """Jobs of like length together, so that little is padded."""

    def new(entry: tuple[Job, CachedRow | None]) -> int:
        job, source = entry
        return len(job.history) - (0 if source is None else source.offset + source.length)

    groups: list[list[tuple[Job, CachedRow | None]]] = []
    for entry in sorted(jobs, key=new):
        if groups and (len(groups[-1]) + 1) * new(entry) <= AREA:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups
