"""The rollout shape: how an episode branches into a tree of joint histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from colearn.types import Outcome


class Rollout(ABC):
    """A stateless strategy: a frozen dataclass that answers three questions at each node.

    The collector advances all live nodes of a turn, over all episodes, together; the shape only
    says how many actions to draw, how to pair them, and which children live on. `chain`,
    `parallel`, `tree` and `cross` need the first two; AT-GRPO's greedy tree keeps the best child
    (`continues`); MHGPO's forks draw more than one action for one agent only (`samples`).
    """

    @abstractmethod
    def samples(self, turn: int, acting: Sequence[str]) -> Mapping[str, int]:
        """How many actions each acting agent draws at a node of this turn."""

    @abstractmethod
    def joint_actions(self, counts: Mapping[str, int]) -> Sequence[Mapping[str, int]]:
        """The joint actions to execute: for each, which of its own actions every agent takes."""

    def continues(self, outcomes: Sequence[Outcome[Any]]) -> Sequence[int]:
        """The children to expand further, by number; all of them unless a shape says otherwise."""
        return range(len(outcomes))

    @property
    def group_size(self) -> int:
        """Joint actions per node of the first turn; group baselines need at least two."""
        return 1
