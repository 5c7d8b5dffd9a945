"""What the Monte-Carlo group algorithms share: K joint actions per history, and no critic."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from colearn.contract import Advantage, Algorithm, Parts, Rollout
from colearn.errors import ConfigError
from colearn.rollout.cross import Cross
from colearn.rollout.parallel import Parallel
from colearn.rollout.tree import KaryTree

from ._policy import PolicySettings


@dataclass(frozen=True, kw_only=True)
class GroupAlgorithm(PolicySettings, Algorithm):
    samples: int = 4
    """K."""
    shape: Literal["tree", "cross", "parallel"] = "tree"
    """Branch at every turn with aligned actions, with all pairings, or at the first turn only."""
    equal_turns: bool = False
    """Weigh every turn of a tree alike: the expected update is then the gradient of the return. As
    in the paper, every joint action weighs alike, so late turns, of which a tree has most, lead."""

    @abstractmethod
    def baseline(self) -> Advantage:
        """How the returns of one history's joint actions are compared."""

    def parts(self) -> Parts:
        return Parts(rollout=self._rollout(), advantage=self.baseline(), loss=self.policy_loss())

    def _rollout(self) -> Rollout:
        match self.shape:
            case "tree":
                return KaryTree(self.samples)
            case "cross":
                return Cross(self.samples)
            case "parallel":
                return Parallel(self.samples)
        raise ConfigError(f"algorithm.shape: unknown '{self.shape}'; use tree, cross or parallel")
