"""Interfaces of every part: task, player, rollout, credit, critic, advantage, loss, generator and
learner. Every part of an algorithm implements one of these interfaces, and an algorithm chooses
which parts are used. Nothing in this package imports torch.
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
from .callback import (
    Callback,
    EvaluateEvent,
    Event,
    Measured,
    RolloutEvent,
    SaveEvent,
    StartEvent,
    UpdateEvent,
)
from .critic import Critic, ReadAt, Tokenize
from .engine import (
    BatchEngine,
    EngineNeeds,
    GeneratorKind,
    Sampling,
    TokenAnswer,
    TokenEngine,
    TokenRequest,
)
from .exact import Decision, EnumeratedGame, FiniteProblem
from .headline import OWN_METRICS, Better, Headline
from .history import TokenHistory, WindowExceeded
from .host import FrozenCopy, HostKind
from .learner import (
    Accumulated,
    Learner,
    LearnerKind,
    MemoryFootprint,
    Minibatch,
    Objective,
    Optimizer,
    WeightCopy,
)
from .loss import PolicyBatch, PolicyLoss
from .network_key import NetworkKey
from .player import ActionRequest, Acts, Cast, Player, SampledAction, View, text_of
from .reward import RewardFunction
from .reward_credit import Credit, Paid
from .rollout import Rollout, Round
from .task import DecPOMDP, joint_observations
from .tracker import Tracker
from .weight_sync import WeightUpdate

__all__ = [
    "OWN_METRICS",
    "Accumulated",
    "ActionRequest",
    "Acts",
    "Advantage",
    "Advantages",
    "AgentValues",
    "Algorithm",
    "AnswerGroup",
    "BatchEngine",
    "Better",
    "Callback",
    "Cast",
    "CounterfactualValues",
    "Credit",
    "Critic",
    "DecPOMDP",
    "Decision",
    "EngineNeeds",
    "EnumeratedGame",
    "Episodes",
    "EvaluateEvent",
    "Event",
    "FiniteProblem",
    "FrozenCopy",
    "GeneratorKind",
    "Headline",
    "HostKind",
    "Learner",
    "LearnerKind",
    "Measured",
    "MemoryFootprint",
    "Minibatch",
    "NetworkKey",
    "NodeAdvantages",
    "Objective",
    "Optimizer",
    "Paid",
    "Parts",
    "Player",
    "PolicyBatch",
    "PolicyLoss",
    "ReadAt",
    "RewardFunction",
    "Rollout",
    "RolloutEvent",
    "Round",
    "SampledAction",
    "Sampling",
    "SaveEvent",
    "StartEvent",
    "TokenAdvantages",
    "TokenAnswer",
    "TokenEngine",
    "TokenHistory",
    "TokenRequest",
    "TokenValues",
    "Tokenize",
    "Tracker",
    "UpdateEvent",
    "ValueLoss",
    "Values",
    "View",
    "WeightCopy",
    "WeightUpdate",
    "WindowExceeded",
    "joint_observations",
    "text_of",
]
