"""Shapes whose joint actions pair the j-th action of each agent with the j-th of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract import Branching, Rollout
from colearn.errors import ConfigError


class Aligned(Rollout):
    """K actions per acting agent make K joint actions, so a node has K children. An agent that
    drew fewer repeats its last one."""

    def joint_actions(
        self, at: Branching, counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        most = max(counts.values(), default=0)
        return [{a: min(k, count - 1) for a, count in counts.items()} for k in range(most)]


@dataclass(frozen=True)
class Group(Rollout):
    """What shapes with groups of K share."""

    k: int = 4
    """K."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k: must be 1 or more, got {self.k}; set 2 or more")

    @property
    def group_size(self) -> int:
        return self.k
