"""Every action of one agent meets every action of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from colearn.contract import Rollout

from .aligned import check_samples


@dataclass(frozen=True)
class Cross(Rollout):
    """K actions per acting agent, K^m joint actions where m agents act: rewards are cheap here,
    generations dear.

    Wrong when `step` is slow or the horizon long: an episode runs K^m + ... + K^(mH) steps. Two
    siblings may share an agent's action, so they are not independent draws.
    """

    samples_per_node: int
    """K: actions of each acting agent."""

    def __post_init__(self) -> None:
        check_samples(self.samples_per_node)

    def samples(self, turn: int, acting: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(acting, self.samples_per_node)

    def joint_actions(self, counts: Mapping[str, int]) -> Sequence[Mapping[str, int]]:
        numbers = product(*(range(count) for count in counts.values()))
        return [dict(zip(counts, joint, strict=True)) for joint in numbers]

    @property
    def group_size(self) -> int:
        """K, the actions per agent: K^m would need to know how many act, and is never smaller."""
        return self.samples_per_node
