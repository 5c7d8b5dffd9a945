"""Coordinates the processes of a run that share generation servers: the first process writes, and
all processes receive the outcome."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch

from colearn.errors import ColearnError

Given = TypeVar("Given")

_LONGEST = timedelta(days=1)
"""Timeout for processes that wait for the first process. The work of the first process has separate
time limits."""


class Ranks:
    """The run's processes, in a separate CPU process group. Every process must create this object,
    in the same order relative to other process groups."""

    def __init__(self) -> None:
        self._group: Any = None
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            self._group = torch.distributed.new_group(backend="gloo", timeout=_LONGEST)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self._group is None or torch.distributed.get_rank() == 0

    def by_first(self, work: Callable[[], Given]) -> Given:
        """Return the result of `work`, which only the first process runs. All processes must call
        this method, and all wait for the result.

        Errors: a ColearnError of `work`, in every process.
        """
        if self._group is None:
            return work()
        outcome: list[tuple[Any, ColearnError | None]] = [(None, None)]
        if self.first:
            try:
                outcome = [(work(), None)]
            except ColearnError as error:
                outcome = [(None, error)]
        torch.distributed.broadcast_object_list(outcome, src=0, group=self._group)
        result, failed = outcome[0]
        if failed is not None:
            failed.everywhere = True
            raise failed
        value: Given = result
        return value
