"""Saves and restores the state of an algorithm's parts in the run's progress, which a checkpoint
stores. The state consists of baselines of the advantage, mean returns by item, and the cast's
choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract.part_errors import calling_part
from colearn.contract.types import Tree
from colearn.runs.record import Progress

from .team import Team
from .update.updater import Updater


def restore_parts(progress: Progress, run: ResolvedRun, updater: Updater | None) -> None:
    """Restore the parts' state from the progress of a run or of a checkpoint."""
    with calling_part("algorithm.advantage", run.parts.advantage):
        run.parts.advantage.restore(progress.baselines)
    run.cast.restore(progress.cast)
    if updater is not None:
        updater.item_means.state = dict(progress.item_means)


def store_parts(progress: Progress, run: ResolvedRun, updater: Updater | None) -> None:
    """Copy the parts' state into the progress that a checkpoint stores."""
    with calling_part("algorithm.advantage", run.parts.advantage):
        progress.baselines = dict(run.parts.advantage.state())
    progress.cast = dict(run.cast.state())
    if updater is not None:
        progress.item_means = dict(updater.item_means.state)


def settle_cast(team: Team, trees: Sequence[Tree[Any]]) -> None:
    """Report an iteration's episodes to a cast with past selves, and copy the current models into
    the slot that the cast chooses."""
    cast = team.run.cast
    if not cast.pool:
        return
    slot = cast.settle(team.run.parts.credited(trees))
    if slot is not None:
        team.keep_past(slot)
