"""Interfaces of every part: task, player, rollout, credit, critic, advantage, loss, generator and
learner. Parts implement them and algorithms choose among them; nothing here imports torch.
"""

from .advantage import (
    Advantage,
    Advantages,
    AgentValues,
    AnswerGroup,
    CounterfactualValues,
    Episodes,
    NodeAdvantages,
    TokenAdvantages,
    TokenValues,
    Values,
)
from .algorithm import Algorithm, Parts, ValueLoss
from .critic import Critic, ReadAt, Segment, Tokenize
from .generator import Generator, GeneratorKind, Listener, Request, Sampled, Sampling, Session
from .headline import OWN_METRICS, Better, Headline
from .host import Follower, Hosted, HostKind, HostWorker, ModelHost
from .learner import (
    Accumulated,
    Kept,
    Learner,
    LearnerConstructor,
    LearnerKind,
    Objective,
    Prepared,
)
from .loss import PolicyBatch, PolicyLoss
from .network_key import NetworkKey
from .optional import (
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
    horizon_of,
)
from .player import Acts, Ask, BatchedTable, Cast, Player, Said, Spoken, Table, View
from .reward import RewardFunction
from .reward_credit import Credit, Paid
from .rollout import Branching, Child, Rollout, Round
from .task import DecPOMDP, joint_observations
from .tracker import Tracker
from .weight_sync import WeightUpdate

__all__ = [
    "OWN_METRICS",
    "Accumulated",
    "Acts",
    "Advantage",
    "Advantages",
    "AgentValues",
    "Algorithm",
    "AnswerGroup",
    "Ask",
    "BatchedTable",
    "Better",
    "Branching",
    "Cast",
    "Child",
    "CounterfactualValues",
    "Credit",
    "Critic",
    "DecPOMDP",
    "Drawable",
    "Episodes",
    "ExactlyMeasured",
    "FiniteTask",
    "Follower",
    "Generator",
    "GeneratorKind",
    "Headline",
    "HostKind",
    "HostWorker",
    "Hosted",
    "ItemHorizons",
    "Kept",
    "Learner",
    "LearnerConstructor",
    "LearnerKind",
    "LegalActions",
    "Listener",
    "ModelHost",
    "NetworkKey",
    "NodeAdvantages",
    "Objective",
    "Paid",
    "Parts",
    "PlayedAlone",
    "Player",
    "PolicyBatch",
    "PolicyLoss",
    "Prepared",
    "PrivilegedInfo",
    "ProgramEpisodes",
    "QueriedTask",
    "ReadAt",
    "ReadsActions",
    "Request",
    "RewardFunction",
    "RewardStructure",
    "Rollout",
    "Round",
    "Said",
    "Sampled",
    "Sampling",
    "Segment",
    "Services",
    "Session",
    "Spoken",
    "Table",
    "TokenAdvantages",
    "TokenValues",
    "Tokenize",
    "Tracker",
    "ValueLoss",
    "Values",
    "View",
    "WeightUpdate",
    "horizon_of",
    "joint_observations",
]
