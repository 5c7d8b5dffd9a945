"""Rollout shapes: chains, parallel chains, trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated, Any

from pydantic import Field

from colearn.contract import Rollout
from colearn.contract.types import Node
from colearn.errors import ConfigError

MOST_ACTIONS = 2**16
"""Maximum number of sampled actions in one tree, and maximum number of joint actions in one tree.
For example, a full tree with K=4, six turns and two agents has 10,920 sampled actions."""


def check_size(actions: int, shape: object, turn: int) -> None:
    """Errors: ConfigError if a tree has more than `MOST_ACTIONS` actions up to and including turn
    `turn` (counted from 0)."""
    if actions > MOST_ACTIONS:
        raise ConfigError(
            f"algorithm.rollout.k: one tree of {type(shape).__name__} has more than "
            f"{MOST_ACTIONS:,} actions by turn {turn + 1}; lower it, or the task's horizon"
        )


class Aligned(Rollout):
    """Base class of shapes in which K actions per acting agent form K joint actions, so that a node
    has K children. An agent with fewer than K samples repeats its last sample."""

    def joint_actions(
        self, at: Node[Any], counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        largest = max(counts.values(), default=0)
        return [{a: min(k, count - 1) for a, count in counts.items()} for k in range(largest)]


@dataclass(frozen=True)
class Group(Rollout):
    """Base class of shapes with groups of size K."""

    k: Annotated[int, Field(ge=1, le=1024, description="set 2 or more")] = 4
    """K, the number of sampled actions per agent and history."""

    @property
    def group_size(self) -> int:
        return self.k


@dataclass(frozen=True, kw_only=True)
class Chain(Aligned):
    """Samples one action per agent and history. An episode of n agents and H turns costs n H
    generations.

    Wrong when the baseline compares several actions of the same history.
    """

    forks_later = False

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1)


@dataclass(frozen=True, kw_only=True)
class CounterfactualChain(Chain):
    """A chain whose agents sample K further actions at every history, for a counterfactual critic.
    The further actions are not executed. An episode of n agents and H turns costs n H (1 + K)
    generations and H environment steps.

    Wrong without a counterfactual critic: the further actions are then unused.
    """

    k: Annotated[int, Field(ge=1, le=1024, description="set 1 or more")] = 4
    """K, the number of further actions per agent and history."""

    @property
    def draws_alternatives(self) -> bool:
        return True

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1 + self.k)

    def joint_actions(
        self, at: Node[Any], counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        return [dict.fromkeys(counts, 0)]


@dataclass(frozen=True)
class Parallel(Group, Aligned):
    """Samples K chains that share only the root's history. An episode of n agents and H turns costs
    n K H generations.

    Wrong when later turns need a group baseline: only the first turn has a group.
    """

    forks_later = False

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, self.k if at.turn == 0 else 1)


@dataclass(frozen=True)
class KaryTree(Group, Aligned):
    """Samples K joint actions at every history, so that every action can be compared with siblings.

    An episode of n agents and H turns costs n K (K^H - 1) / (K - 1) generations (Proposition 4.3).
    A program acts once at a node, so a node where only a program acts does not branch. Wrong when
    the horizon is long: with K=4 and H=4, one item has 340 joint actions.
    """

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return at.candidates(self.k)


@dataclass(frozen=True)
class Cross(Group):
    """Samples K actions per acting agent and executes all K^m joint actions of the m acting agents.
    Intended for cheap rewards and expensive generation.

    Wrong when `step` is slow or the horizon is long: an episode runs K^m + ... + K^(mH) steps. Two
    siblings may share an agent's action, so siblings are not independent samples. The group size is
    K, the number of actions per agent; the number of children K^m is at least K.
    """

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return at.candidates(self.k)

    def joint_actions(
        self, at: Node[Any], counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        check_size(prod(counts.values()), self, at.turn)  # before they are listed
        numbers = product(*(range(count) for count in counts.values()))
        return [dict(zip(counts, joint, strict=True)) for joint in numbers]
