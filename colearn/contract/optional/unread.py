"""Checks that a task inherits every optional interface whose members the task defines."""

from __future__ import annotations

from .drawable import Drawable
from .exactly_measured import ExactlyMeasured, FiniteTask, QueriedTask
from .item_horizons import ItemHorizons
from .legal_actions import LegalActions
from .option import TaskOption, refuse_without
from .played_alone import PlayedAlone
from .privileged_info import PrivilegedInfo
from .program_episodes import ProgramEpisodes
from .reads_actions import ReadsActions
from .reward_structure import RewardStructure
from .services import Services

OPTIONS: tuple[type[TaskOption], ...] = (
    Drawable,
    ExactlyMeasured,
    FiniteTask,
    ItemHorizons,
    LegalActions,
    PlayedAlone,
    PrivilegedInfo,
    ProgramEpisodes,
    QueriedTask,
    ReadsActions,
    RewardStructure,
    Services,
)


def refuse_unread_members(task: object) -> None:
    """Errors: TaskError for a task or task class that has a member of an optional interface and
    does not inherit the interface, because the library would then ignore the member."""
    kind = task if isinstance(task, type) else type(task)
    for option in OPTIONS:
        if not issubclass(kind, option):
            refuse_without(option, task)
