"""Groups of a batch's actions by game and role, and the weights of actions.

An item is a game (or a problem), and an agent is a role in the game. Payoffs of different games and
roles have different scales and means: between equally skilled players of Tic-Tac-Toe, the first
player wins more often. Payoffs also depend on the opponent: an agent's loss to a tree search is not
compared with the tree search's win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan
from typing import Any

from colearn.contract import Episodes, NodeAdvantages
from colearn.contract.scored import mean_scored
from colearn.contract.types import Tree

Key = tuple[str, str]
"""Group key: a pair (item, role). The role is the agent's name ('' if roles are pooled), followed
by the names of rivals, if any."""

Actions = dict[tuple[int, int, str], float]
"""One number for each action, keyed by (index of the episode, node that the action led to,
agent)."""


def group_of(episode: Tree[Any], agent: str, *, by_role: bool) -> Key:
    """Return the sub-group G^p of an agent's actions in an episode. Rivals are players from outside
    the team. Games against different rivals form different groups, and the actions of each rival
    form a separate group."""
    role = agent if by_role else ""
    players = {seat: episode.player(seat) for seat in episode.agents}
    rivals = {seat: name for seat, name in players.items() if name not in episode.agents}
    if agent in rivals:
        role = f"{agent} by {rivals[agent]}"
    elif rivals:
        role = f"{role} against {', '.join(sorted(rivals.values()))}"
    return repr(episode.item), role


def weight_group_of(episode: Tree[Any], agent: str, *, by_role: bool) -> Key:
    """Return the weight group of an agent's actions: game and role, regardless of the opponents. A
    rival that plays the role has a separate group."""
    role, player = agent if by_role else "", episode.player(agent)
    return repr(episode.item), role if player in episode.agents else f"{role} by {player}"


def of_actions(episodes: Episodes, value: Callable[[Tree[Any], str], Sequence[float]]) -> Actions:
    """Return one number for each scored action. `value` returns an agent's numbers, keyed by
    node."""
    by_action: Actions = {}
    for place, episode in enumerate(episodes):
        for agent in episode.agents:
            numbers = value(episode, agent)
            for node in episode.nodes:
                if agent in node.actions and not isnan(numbers[node.index]):
                    by_action[place, node.index, agent] = numbers[node.index]
    return by_action


def turn_rewards(episode: Tree[Any], agent: str) -> tuple[float, ...]:
    """Return the reward r_k of each action k of the agent. r_k is the agent's discounted reward
    from action k until the agent's next action, averaged over branches. The return at action k is
    the sum of r_k and all later rewards. The rewards of a truncated episode's missing turns belong
    to the last action."""
    below, tails = episode.below(), episode.tails(episode.discount)
    paid = [0.0] * len(episode.nodes)
    for node in reversed(episode.nodes):
        reward = episode.rewards[node.index].get(agent, 0.0)
        after = [
            0.0 if agent in episode.nodes[child].actions else paid[child]
            for child in below[node.index]
        ]
        future = tails[node.index] if node.truncated else mean_scored(after)
        paid[node.index] = reward + episode.discount * future
    return tuple(paid)


def whole_returns(episode: Tree[Any], agent: str) -> list[float]:
    """Return, for each node, the agent's mean return R over the trajectories that pass through the
    node."""
    returns, below = episode.returns_of(agent), episode.below()
    full_returns = [returns[0]] * len(returns)
    for node, children in zip(episode.nodes, below, strict=True):
        for child in children:
            middle = mean_scored(returns[sibling] for sibling in children)
            difference = returns[child] - middle
            full_returns[child] = (
                full_returns[node.index] + episode.discount**node.turn * difference
            )
    return full_returns


def own_turn(episode: Tree[Any], agent: str, index: int) -> int:
    """Return the number of actions that the agent took before the action that led to node
    `index`."""
    chain = episode.ancestry(index)
    return sum(agent in node.actions for node in chain) - 1


def equal_trajectories(actions: Actions, keys: Mapping[tuple[int, str], Key]) -> Actions:
    """Multiply the number of each action by N / (T n). The action's group has N actions in T
    trajectories, and the action's trajectory has n of these N actions. The mean over actions then
    equals Eq. 3: the mean over trajectories of the mean over turns. `keys`: the group of each
    (index of the episode, agent)."""
    actions_of_seat: dict[tuple[int, str], int] = {}
    for place, _, agent in actions:
        actions_of_seat[place, agent] = actions_of_seat.get((place, agent), 0) + 1
    total: dict[Key, int] = {}
    count: dict[Key, int] = {}
    for seat, number in actions_of_seat.items():
        total[keys[seat]] = total.get(keys[seat], 0) + number
        count[keys[seat]] = count.get(keys[seat], 0) + 1
    weighed = {}
    for (place, node, agent), value in actions.items():
        key = keys[place, agent]
        weighed[place, node, agent] = (
            value * total[key] / (count[key] * actions_of_seat[place, agent])
        )
    return weighed


def by_node(episodes: Episodes, actions: Actions) -> list[NodeAdvantages]:
    """Convert numbers by action to advantages by node, the format that `Advantage` requires."""
    rows: list[list[dict[str, float]]] = [[{} for _ in episode.nodes] for episode in episodes]
    for (place, node, agent), value in actions.items():
        rows[place][node][agent] = value
    return [tuple(nodes) for nodes in rows]


def grouped(actions: Actions, keys: Mapping[tuple[int, str], Key]) -> dict[Key, list[float]]:
    """Collect the values of the actions in each group."""
    return grouped_by(actions, {at: keys[at[0], at[2]] for at in actions})


def grouped_by(
    actions: Actions, keys: Mapping[tuple[int, int, str], Any]
) -> dict[Any, list[float]]:
    """Collect the values of the actions in each group. `keys`: the group of each action."""
    groups: dict[Any, list[float]] = {}
    for at, value in actions.items():
        groups.setdefault(keys[at], []).append(value)
    return groups


def summed(episodes: Episodes, rewards: Actions) -> Actions:
    """Return the sum of rewards from each action to the end of the episode. Actions whose sum is
    not scored are omitted. Later rewards are averaged over branches, and discounted by the number
    of turns since the action, including turns of other agents."""
    sums: Actions = {}
    for place, node, agent in sorted(rewards, key=lambda at: at[1], reverse=True):
        nodes, discount = episodes[place].nodes, episodes[place].discount
        later = [
            discount ** (nodes[after].turn - nodes[node].turn)
            * sums.get((place, after, agent), nan)
            for after in next_own(episodes[place], agent, node)
        ]
        sums[place, node, agent] = rewards[place, node, agent] + mean_scored(later)
    return {at: value for at, value in sums.items() if not isnan(value)}


def next_own(episode: Tree[Any], agent: str, index: int) -> list[int]:
    """Return the nodes of the agent's next action after node `index`, one node per branch."""
    below, pending = episode.below(), [index]
    next_nodes: list[int] = []
    while pending:
        for child in below[pending.pop()]:
            acts = agent in episode.nodes[child].actions
            (next_nodes if acts else pending).append(child)
    return next_nodes
