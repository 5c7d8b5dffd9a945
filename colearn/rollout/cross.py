"""Every action of one agent meets every action of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from colearn.contract import Branching

from .aligned import Group


@dataclass(frozen=True)
class Cross(Group):
    """K actions per acting agent, K^m joint actions where m agents act: rewards are cheap here,
    generations dear.

    Wrong when `step` is slow or the horizon long: an episode runs K^m + ... + K^(mH) steps. Two
    siblings may share an agent's action, so they are not independent draws. Its group size is K,
    the actions per agent: K^m would need to know how many act, and is never smaller.
    """

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, self.k)

    def joint_actions(
        self, at: Branching, counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        numbers = product(*(range(count) for count in counts.values()))
        return [dict(zip(counts, joint, strict=True)) for joint in numbers]
