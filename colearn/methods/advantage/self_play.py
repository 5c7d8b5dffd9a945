"""Advantages of self-play, in groups by game and role: SPIRAL, MARSHAL and MT-GRPO.

`RoleBaseline` subtracts a moving average from a game's return. `SumThenNormalize` subtracts a
group's mean from the return of each turn. `TurnByTurn` normalises turn rewards before summing the
rewards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Annotated, Any

from pydantic import Field

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.contract.types import Tree

from .finish import EPSILON, deviation
from .self_play_groups import (
    Actions,
    Key,
    by_node,
    equal_trajectories,
    group_of,
    grouped,
    grouped_by,
    of_actions,
    own_turn,
    summed,
    turn_rewards,
    weight_group_of,
    whole_returns,
)


@dataclass(frozen=True, kw_only=True)
class RoleBaseline(Advantage):
    """Role-conditioned advantage estimation (SPIRAL): b <- decay b + (1 - decay) R, then A = R - b
    for all turns of the trajectory. Each game and role has a separate baseline b.

    The baseline starts at 0, persists between updates and is saved in checkpoints. Wrong when
    episodes are long: every turn is credited with the return of the whole game.
    """

    decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.95
    """Weight of the previous value in the moving average."""
    _baselines: dict[str, float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        """Compute advantages; trajectories update the baseline one by one, in the order of the
        episodes."""
        advantages: Actions = {}
        for place, episode in enumerate(episodes):
            for agent in episode.agents:
                acted = [node.index for node in episode.nodes if agent in node.actions]
                if not acted:
                    continue
                key = "/".join(group_of(episode, agent, by_role=True))
                full_returns = whole_returns(episode, agent)
                for leaf in episode.leaves():
                    if isnan(full_returns[leaf.index]):
                        continue  # not scored
                    before = self._baselines.get(key, 0.0)
                    self._baselines[key] = (
                        self.decay * before + (1.0 - self.decay) * full_returns[leaf.index]
                    )
                for node in acted:
                    if not isnan(full_returns[node]):
                        advantages[place, node, agent] = full_returns[node] - self._baselines[key]
        return by_node(episodes, advantages)

    def state(self) -> Mapping[str, float]:
        return dict(self._baselines)

    def restore(self, state: Mapping[str, float]) -> None:
        self._baselines.clear()
        self._baselines.update(state)


@dataclass(frozen=True, kw_only=True)
class SumThenNormalize(Advantage):
    """A_k^{p,i} = R_k^{p,i} - mean(R^p). R_k is the sum of a player's rewards from the player's
    turn k to the end. The mean is taken over all turns of all trajectories with the same game and
    role (MARSHAL, Eq. 3). In a model's loss, all games and all roles that the model plays have
    equal weight.

    The advantage equals GAE with gamma = lambda = 1 and the same constant as the value of every
    state. Wrong when a role's returns depend more on the turn than on the chosen action: one mean
    cannot separate the two effects.
    """

    turn_level: bool = True
    """If False, every turn uses the return of the whole trajectory (naive GRPO, an ablation of the
    paper)."""
    by_role: bool = True
    """If False, all players of a game form one group (an ablation of the paper)."""
    normalize_std: bool = False
    """Whether to divide by the group's population standard deviation + 1e-6. Eq. 3 has no such
    division."""
    equal_trajectories: bool = True
    """Whether to use the weights of Eq. 2 and 3: 1/P for each group of a game and role, 1/G^p for
    each trajectory of a group, 1/K^i for each turn of a trajectory. If False, all turns have equal
    weight."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        keys = {
            (place, agent): group_of(episode, agent, by_role=self.by_role)
            for place, episode in enumerate(episodes)
            for agent in episode.agents
        }
        value = _returns if self.turn_level else whole_returns
        actions = self._centred(episodes, of_actions(episodes, value), keys)
        if self.equal_trajectories:
            weighed_in = {
                (place, agent): weight_group_of(episodes[place], agent, by_role=self.by_role)
                for place, agent in keys
            }
            actions = equal_trajectories(actions, weighed_in)
        return by_node(episodes, actions)

    def weight_group(self, episode: Tree[Any], agent: str) -> Key | None:
        if not self.equal_trajectories:
            return None
        return weight_group_of(episode, agent, by_role=self.by_role)

    def _centred(
        self, episodes: Episodes, actions: Actions, keys: Mapping[tuple[int, str], Key]
    ) -> Actions:
        """Subtract the group's mean, taken over all turns if `turn_level` is true, else over
        trajectories."""
        counted = actions
        if not self.turn_level:
            counted = {
                (place, leaf.index, agent): full_returns[leaf.index]
                for place, agent in dict.fromkeys((place, agent) for place, _, agent in actions)
                for full_returns in [whole_returns(episodes[place], agent)]
                for leaf in episodes[place].leaves()
                if not isnan(full_returns[leaf.index])
            }
        groups = grouped(counted, keys)
        mean = {key: sum(group) / len(group) for key, group in groups.items()}
        scale = {
            key: deviation(group) + EPSILON if self.normalize_std else 1.0
            for key, group in groups.items()
        }
        return {
            (place, node, agent): (value - mean[keys[place, agent]]) / scale[keys[place, agent]]
            for (place, node, agent), value in actions.items()
        }


@dataclass(frozen=True, kw_only=True)
class TurnByTurn(Advantage):
    """r~_k = (r_k - mean_k) / std_k, with mean and deviation over the k-th turns of all players of
    a role. The advantage at turn k is the sum of r~ from turn k to the end (Zeng et al. 2025, as in
    MARSHAL's appendix F).

    Wrong when episodes differ in length: few trajectories reach late turns, so their statistics are
    noisy. If only one trajectory reached turn k, there is no deviation, and r~_k is 0.
    """

    by_role: bool = True
    """If False, all players of a game form one group."""
    accumulate: bool = True
    """If False, the advantage is r~_k alone, without the r~ of later turns."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        rewards = of_actions(episodes, turn_rewards)
        turn = {
            at: (
                group_of(episodes[at[0]], at[2], by_role=self.by_role),
                own_turn(episodes[at[0]], at[2], at[1]),
            )
            for at in rewards
        }
        groups = grouped_by(rewards, turn)
        mean = {key: sum(group) / len(group) for key, group in groups.items()}
        spread = {key: deviation(group) + EPSILON for key, group in groups.items()}
        local = {at: (r - mean[turn[at]]) / spread[turn[at]] for at, r in rewards.items()}
        return by_node(episodes, summed(episodes, local) if self.accumulate else local)


def _returns(episode: Tree[Any], agent: str) -> Sequence[float]:
    return episode.returns_of(agent)
