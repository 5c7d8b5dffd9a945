"""The contracts: what a task, a rollout shape, a critic, an advantage, a loss, a generator and a
learner must do. Parts implement them, algorithms choose among them, nothing here imports torch.
"""

from .advantage import Advantage, AgentValues, NodeAdvantages
from .algorithm import Algorithm, Parts
from .critic import Critic, Segment
from .generator import Generator, Request, Sampled, Sampling, Session
from .learner import Learner, Objective
from .loss import PolicyBatch, PolicyLoss
from .rollout import Rollout
from .task import DecPOMDP

__all__ = [
    "Advantage",
    "AgentValues",
    "Algorithm",
    "Critic",
    "DecPOMDP",
    "Generator",
    "Learner",
    "NodeAdvantages",
    "Objective",
    "Parts",
    "PolicyBatch",
    "PolicyLoss",
    "Request",
    "Rollout",
    "Sampled",
    "Sampling",
    "Segment",
    "Session",
]
