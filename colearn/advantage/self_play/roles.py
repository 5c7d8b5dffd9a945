"""Groups of a batch's actions by game and role, and the weights of actions.

An item is a game (or a problem), an agent a role in it. Payoffs of different games, and of
different roles in one game, are on different scales and around different means: who moves first in
Tic-Tac-Toe wins more often, however well both play. So are payoffs against different opponents: who
loses to search must not be compared with the search that won.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from colearn.contract import Episodes, NodeAdvantages
from colearn.types import Credited

Key = tuple[str, str]
"""(item, role): the agent, '' where roles are pooled; with its rivals, where it has some."""

Actions = dict[tuple[int, int, str], float]
"""By (episode's place, node that the action led to, agent), one number for each action."""


def group_of(episode: Credited[Any], agent: str, *, by_role: bool) -> Key:
    """The sub-group G^p of an agent's actions in an episode. Where others than the team's players
    sit at the table, the games against each of them are a group, and what they do is one, too."""
    tree = episode.tree
    role = agent if by_role else ""
    players = {seat: tree.player(seat) for seat in tree.agents}
    rivals = {seat: name for seat, name in players.items() if name not in tree.agents}
    if agent in rivals:
        role = f"{agent} by {rivals[agent]}"
    elif rivals:
        role = f"{role} against {', '.join(sorted(rivals.values()))}"
    return repr(tree.item), role


def weight_group_of(episode: Credited[Any], agent: str, *, by_role: bool) -> Key:
    """The game and role that an agent's actions weigh in, whoever its opponents are. What a rival
    does in the seat is apart."""
    tree = episode.tree
    role, player = agent if by_role else "", tree.player(agent)
    return repr(tree.item), role if player in tree.agents else f"{role} by {player}"


def of_actions(
    episodes: Episodes, value: Callable[[Credited[Any], str], Sequence[float]]
) -> Actions:
    """A number for each action; `value` gives an agent's by node."""
    found: Actions = {}
    for place, episode in enumerate(episodes):
        for agent in episode.tree.agents:
            numbers = value(episode, agent)
            for node in episode.tree.nodes:
                if agent in node.actions:
                    found[place, node.index, agent] = numbers[node.index]
    return found


def turn_rewards(episode: Credited[Any], agent: str) -> tuple[float, ...]:
    """r_k of each of the agent's actions: what it was paid from this action up to its next one,
    discounted, as a mean over branches. Sums of r_k from k on are the returns."""
    tree = episode.tree
    below = tree.below()
    paid = [0.0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        own = episode.rewards[node.index].get(agent, 0.0)
        after = [
            0.0 if agent in tree.nodes[child].actions else paid[child]
            for child in below[node.index]
        ]
        later = sum(after) / len(after) if after else 0.0
        paid[node.index] = own + episode.discount * later
    return tuple(paid)


def whole_returns(episode: Credited[Any], agent: str) -> list[float]:
    """By node, the agent's return R of the trajectories that pass it, a mean over branches."""
    returns, below = episode.returns(agent), episode.tree.below()
    whole = [returns[0]] * len(returns)
    for node, children in zip(episode.tree.nodes, below, strict=True):
        for child in children:
            middle = sum(returns[other] for other in children) / len(children)
            apart = returns[child] - middle
            whole[child] = whole[node.index] + episode.discount**node.turn * apart
    return whole


def own_turn(episode: Credited[Any], agent: str, index: int) -> int:
    """How many actions the agent took before the one that led to node `index`."""
    chain = episode.tree.ancestry(index)
    return sum(agent in node.actions for node in chain) - 1


def equal_trajectories(actions: Actions, keys: Mapping[tuple[int, str], Key]) -> Actions:
    """Each action times its group's actions over (the group's trajectories times the actions of
    its own): the mean over a group's actions is then Eq. 3's mean over trajectories of means over
    turns. `keys`: by (episode's place, agent), the group."""
    own: dict[tuple[int, str], int] = {}
    for place, _, agent in actions:
        own[place, agent] = own.get((place, agent), 0) + 1
    total: dict[Key, int] = {}
    count: dict[Key, int] = {}
    for seat, number in own.items():
        total[keys[seat]] = total.get(keys[seat], 0) + number
        count[keys[seat]] = count.get(keys[seat], 0) + 1
    weighed = {}
    for (place, node, agent), value in actions.items():
        key = keys[place, agent]
        weighed[place, node, agent] = value * total[key] / (count[key] * own[place, agent])
    return weighed


def by_node(episodes: Episodes, actions: Actions) -> list[NodeAdvantages]:
    """Back to the form of the contract."""
    rows: list[list[dict[str, float]]] = [[{} for _ in one.tree.nodes] for one in episodes]
    for (place, node, agent), value in actions.items():
        rows[place][node][agent] = value
    return [tuple(nodes) for nodes in rows]


def grouped(actions: Actions, keys: Mapping[tuple[int, str], Key]) -> dict[Key, list[float]]:
    """The numbers of each group."""
    return grouped_by(actions, {at: keys[at[0], at[2]] for at in actions})


def grouped_by(
    actions: Actions, keys: Mapping[tuple[int, int, str], Any]
) -> dict[Any, list[float]]:
    """The numbers of each group, by a key for each action."""
    found: dict[Any, list[float]] = {}
    for at, value in actions.items():
        found.setdefault(keys[at], []).append(value)
    return found


def summed(episodes: Episodes, rewards: Actions) -> Actions:
    """From each action on, the later ones as a mean over branches, discounted by the turns between
    them, whoever acts there."""
    found: Actions = {}
    for place, node, agent in sorted(rewards, key=lambda at: at[1], reverse=True):
        nodes, discount = episodes[place].tree.nodes, episodes[place].discount
        later = [
            discount ** (nodes[after].turn - nodes[node].turn) * found[place, after, agent]
            for after in next_own(episodes[place], agent, node)
        ]
        rest = sum(later) / len(later) if later else 0.0
        found[place, node, agent] = rewards[place, node, agent] + rest
    return found


def next_own(episode: Credited[Any], agent: str, index: int) -> list[int]:
    """The nodes of the agent's next action after node `index`, one for each branch."""
    below, pending = episode.tree.below(), [index]
    found: list[int] = []
    while pending:
        for child in below[pending.pop()]:
            own = agent in episode.tree.nodes[child].actions
            (found if own else pending).append(child)
    return found
