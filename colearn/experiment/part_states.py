"""Saves and restores the state of an algorithm's parts in the run's progress, which a checkpoint
stores. The state consists of baselines of the advantage, mean returns by item, and the cast's
choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.record import Progress
from colearn.types import Tree

from .assemble import Assembly


def restore_parts(progress: Progress, assembly: Assembly) -> None:
    """Restore the parts' state from the progress of a run or of a checkpoint."""
    assembly.run.parts.advantage.restore(progress.baselines)
    assembly.run.cast.restore(progress.cast)
    if assembly.updater is not None:
        assembly.updater.random_rewards = progress.random_rewards
        assembly.updater.item_means.state = dict(progress.item_means)


def store_parts(progress: Progress, assembly: Assembly) -> None:
    """Copy the parts' state into the progress that a checkpoint stores."""
    progress.baselines = dict(assembly.run.parts.advantage.state())
    progress.cast = dict(assembly.run.cast.state())
    if assembly.updater is not None:
        progress.random_rewards = assembly.updater.random_rewards
        progress.item_means = dict(assembly.updater.item_means.state)


def settle_cast(assembly: Assembly, trees: Sequence[Tree[Any]]) -> None:
    """Report an iteration's episodes to a cast with past selves, and copy the current models into
    the slot that the cast chooses."""
    cast = assembly.run.cast
    if not cast.pool:
        return
    slot = cast.settle(assembly.run.parts.credited(trees))
    if slot is not None:
        for copy in assembly.past[slot].values():
            copy.copy_weights()
