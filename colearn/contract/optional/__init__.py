"""Optional interfaces of a task, in addition to the members of `DecPOMDP`.

A task class inherits the interfaces that it supports. Code that reads an interface calls
`Interface.of(task)`. The call returns the task itself or, if the task does not inherit the
interface, an object whose methods return neutral answers. `isinstance` works as well.

    Drawable          text, pictures and drawings for reports and the watch page
    ExactlyMeasured   the headline of exact evaluation; QueriedTask, FiniteTask: how it is computed
    ItemHorizons      the maximum number of turns of single items
    LegalActions      random legal actions, which warm-start the embedded model
    PlayedAlone       the task as one agent plays it for the team
    PrivilegedInfo    text for central critics alone
    ProgramEpisodes   episodes that are runs of a program
    ReadsActions      steps that read tokens and log-probabilities
    RewardStructure   who is paid and when, bounds and optimum
    Services          costs and release of what runs outside of the task
"""

from .drawable import Drawable
from .exactly_measured import Decision, ExactlyMeasured, FiniteTask, QueriedTask
from .item_horizons import ItemHorizons, horizon_of
from .legal_actions import LegalActions
from .option import TaskOption
from .played_alone import PlayedAlone
from .privileged_info import PrivilegedInfo
from .program_episodes import ProgramEpisodes
from .reads_actions import ReadsActions
from .reward_structure import RewardStructure
from .services import Services
from .unread import OPTIONS, refuse_unread_members

__all__ = [
    "OPTIONS",
    "Decision",
    "Drawable",
    "ExactlyMeasured",
    "FiniteTask",
    "ItemHorizons",
    "LegalActions",
    "PlayedAlone",
    "PrivilegedInfo",
    "ProgramEpisodes",
    "QueriedTask",
    "ReadsActions",
    "RewardStructure",
    "Services",
    "TaskOption",
    "horizon_of",
    "refuse_unread_members",
]
