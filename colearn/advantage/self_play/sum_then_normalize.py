"""MARSHAL's advantage: returns from each turn on, less their mean within a role's sub-group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.advantage.finish import EPSILON, deviation
from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.types import Credited

from .roles import (
    Actions,
    Key,
    by_node,
    equal_trajectories,
    group_of,
    grouped,
    of_actions,
    summed,
    turn_rewards,
    weight_group_of,
    whole_returns,
)


@dataclass(frozen=True, kw_only=True)
class SumThenNormalize(Advantage):
    """A_k^{p,i} = R_k^{p,i} - mean(R^p): R_k is the sum of the player's rewards from its turn k on,
    the mean is over all turns of all trajectories of its game and role (MARSHAL, Eq. 3). Roles that
    share a model, and games that are trained together, weigh alike in its loss.

    This is GAE with gamma = lambda = 1 and one constant as the value of all states. Wrong when
    returns differ more between the turns of a role than between its choices: one mean cannot tell.
    """

    turn_level: bool = True
    """False: every turn has the return of its whole trajectory (the ablation; naive GRPO)."""
    by_role: bool = True
    """False: one group for all players of a game (the ablation)."""
    normalize_std: bool = False
    """Divide by the group's population deviation + 1e-6, which Eq. 3 leaves out."""
    equal_trajectories: bool = True
    """Weigh as Eq. 2 and 3: the groups of game and role alike (1/P), in a group its trajectories
    (1/G^p), in a trajectory its turns (1/K^i). False: every turn alike."""
    order: Literal["paper", "released"] = "paper"
    """"released": as the authors' code does it. The mean of the turns' rewards is subtracted by
    role, the rest whitened over tokens; the sums from each turn on lose the mean of their different
    values, by role, and are whitened over tokens again, over all roles and games."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        keys = {
            (place, agent): group_of(episode, agent, by_role=self.by_role)
            for place, episode in enumerate(episodes)
            for agent in episode.tree.agents
        }
        if self.order == "released":
            actions = _released(episodes, keys)
        else:
            value = _returns if self.turn_level else whole_returns
            actions = self._centred(episodes, of_actions(episodes, value), keys)
        if self.equal_trajectories:
            weighed_in = {
                (place, agent): weight_group_of(episodes[place], agent, by_role=self.by_role)
                for place, agent in keys
            }
            actions = equal_trajectories(actions, weighed_in)
        return by_node(episodes, actions)

    def weight_group(self, episode: Credited[Any], agent: str) -> Key | None:
        if not self.equal_trajectories:
            return None
        return weight_group_of(episode, agent, by_role=self.by_role)

    def _centred(
        self, episodes: Episodes, actions: Actions, keys: Mapping[tuple[int, str], Key]
    ) -> Actions:
        """Less the mean of the group: of all its turns, or of its trajectories."""
        counted = actions
        if not self.turn_level:
            counted = {
                (place, leaf.index, agent): whole[leaf.index]
                for place, agent in dict.fromkeys((place, agent) for place, _, agent in actions)
                for whole in [whole_returns(episodes[place], agent)]
                for leaf in episodes[place].tree.leaves()
            }
        groups = grouped(counted, keys)
        mean = {key: sum(found) / len(found) for key, found in groups.items()}
        scale = {
            key: deviation(found) + EPSILON if self.normalize_std else 1.0
            for key, found in groups.items()
        }
        return {
            (place, node, agent): (value - mean[keys[place, agent]]) / scale[keys[place, agent]]
            for (place, node, agent), value in actions.items()
        }


def _returns(episode: Credited[Any], agent: str) -> Sequence[float]:
    return episode.returns(agent)


def _released(episodes: Episodes, keys: Mapping[tuple[int, str], Key]) -> Actions:
    rewards = of_actions(episodes, turn_rewards)
    rewards = _less(rewards, keys, lambda found: sum(found) / len(found))
    rewards = _whitened(episodes, rewards)
    returns = summed(episodes, rewards)
    returns = _less(returns, keys, lambda found: sum(set(found)) / len(set(found)))
    return _whitened(episodes, returns)


def _less(
    actions: Actions,
    keys: Mapping[tuple[int, str], Key],
    middle: Callable[[list[float]], float],
) -> Actions:
    shift = {key: middle(found) for key, found in grouped(actions, keys).items()}
    return {
        (place, node, agent): value - shift[keys[place, agent]]
        for (place, node, agent), value in actions.items()
    }


def _whitened(episodes: Episodes, actions: Actions) -> Actions:
    """Zero mean and unit deviation over tokens, an action's number standing at each of its own."""
    tokens = {
        (place, node, agent): max(1, len(episodes[place].tree.nodes[node].actions[agent].tokens))
        for place, node, agent in actions
    }
    total = sum(tokens.values())
    if not total:
        return actions
    mean = sum(tokens[at] * value for at, value in actions.items()) / total
    variance = sum(tokens[at] * (value - mean) ** 2 for at, value in actions.items()) / total
    return {at: (value - mean) / (variance**0.5 + EPSILON) for at, value in actions.items()}
