"""Divides the episodes of a distributed run among the ranks, and exchanges their experience; rank 0
writes files.

torchrun or accelerate starts the processes. Without these launchers, there is one process and
nothing to exchange.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import gather_object

from colearn.contract.types import Tree
from colearn.errors import ColearnError, WorkerLost
from colearn.rollout.counts import Counts
from colearn.text.launcher import check_launcher

Given = TypeVar("Given")
Grown = tuple[list[Tree[Any]], Counts]
"""Trees of episodes, and the cost counts of these trees."""


class Processes:
    """This process, which is one rank, and the collective operations between the ranks."""

    def __init__(self, device: torch.device) -> None:
        check_launcher()
        # without cpu=True, accelerate treats processes without an accelerator as single
        self._state = PartialState(cpu=device.type == "cpu")
        if self.count > 1:
            atexit.register(_leave)

    @property
    def main(self) -> bool:
        """Whether this is rank 0, which writes the run's files."""
        return bool(self._state.is_main_process)

    @property
    def count(self) -> int:
        return int(self._state.num_processes)

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true on at least one rank; a collective call."""
        return flag if self.count == 1 else any(gather_object([flag]))

    def share_of(self, items: Sequence[Any]) -> tuple[int, Sequence[Any]]:
        """Returns this rank's contiguous part of the items, which may be empty, and the index of
        the part's first item."""
        count, rank = self.count, self._state.process_index
        first, last = len(items) * rank // count, len(items) * (rank + 1) // count
        return first, items[first:last]

    def all_of(self, work: Callable[[], Given]) -> list[Given]:
        """The results of `work` on all ranks, in rank order; a collective call.

        Errors: the ColearnError of the first rank on which `work` fails. This error is raised on
        all ranks, so that no rank waits for a rank that has ended.
        """
        if self.count == 1:
            return [work()]
        outcome: tuple[Any, ColearnError | None]
        try:
            outcome = work(), None
        except ColearnError as error:
            outcome = None, error
        outcomes: list[tuple[Given, ColearnError | None]] = gather_object([outcome])
        for _, failed in outcomes:
            if failed is not None:
                failed.everywhere = True
                raise failed
        return [result for result, _ in outcomes]

    def exchange(self, grow: Callable[[], Grown]) -> Grown:
        """Returns the trees of all ranks in episode order, and the summed counts. Every rank
        receives the same result, so that all ranks update on the same minibatch.

        Errors: as for `all_of`; WorkerLost for a broken pool of workers.
        """
        parts = self.all_of(lambda: _grown(grow))
        if self.count == 1:
            return parts[0]
        turns = [part.response_seconds for _, part in parts]
        together = Counts(
            generations=sum(part.generations for _, part in parts),
            joint_actions=sum(part.joint_actions for _, part in parts),
            tokens=sum(part.tokens for _, part in parts),
            response_seconds=[
                max(seconds[turn] for seconds in turns if turn < len(seconds))
                for turn in range(max(map(len, turns)))
            ],
        )
        return [tree for part, _ in parts for tree in part], together

    def wait(self) -> None:
        """A barrier over all ranks."""
        self._state.wait_for_everyone()


def _grown(grow: Callable[[], Grown]) -> Grown:
    try:
        return grow()
    except BrokenProcessPool:
        raise WorkerLost(
            "task.step: a worker process died during a step (killed, out of memory, or ended by "
            "the task); set run.step_workers to 0 to see where"
        ) from None


def _leave() -> None:
    """Destroys the process group, because its threads could abort the process when the interpreter
    exits: a thread needs the GIL to release the tensors of the last operation. Where another
    library holds the group (DeepSpeed does), its threads stay, but are idle."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    while True:
        time.sleep(0.001)  # releases the GIL
        if not _groups_work():
            return


def _groups_work() -> bool:
    """Whether a thread of a gloo group is running. Only Linux tells."""
    for thread in Path("/proc/self/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            name, _, state = thread.read_text().partition(") ")
            if "(pt_gloo" in name and not state.startswith("S"):
                return True
    return False
