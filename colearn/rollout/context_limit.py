"""Lengths of agents' contexts in a growing tree, against the maximum lengths of their models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from colearn.contract import Player
from colearn.contract.types import Node, Observation
from colearn.errors import ConfigError, TaskError


def context_tokens(nodes: Sequence[Node[Any]], node: Node[Any], seat: str) -> int:
    """Return the number of tokens in an agent's context at a node, including the node's
    observation. `nodes` holds the node's ancestors, by index."""
    count = 0
    while True:
        observation = node.observations.get(seat)
        if observation is not None:
            count += len(observation.tokens)
            if observation.fresh:
                return count
        if node.parent is None:
            return count
        if seat in node.actions:
            count += len(node.actions[seat].tokens)
        node = nodes[node.parent]


def overlong(
    nodes: Sequence[Node[Any]],
    node: Node[Any],
    observed: Mapping[str, Observation],
    players: Mapping[str, Player],
) -> str | None:
    """Return the first agent whose history leaves no room for an answer within the maximum length
    of its model. `observed` are the observations at `node`, which does not have them yet; `players`
    are the players by agent.

    Errors: TaskError if the first observation alone is too long; ConfigError if the player may not
    truncate the episode.
    """
    for seat, observation in observed.items():
        player = players[seat]
        if player.positions is None:
            continue
        tokens = _with(observation, nodes, node, seat)
        if node.parent is None:
            check_length(seat, tokens, player.positions)
        elif tokens >= player.positions:
            if not player.truncates:
                raise ConfigError(
                    f"agents.{seat}.overflow: a history of {tokens} tokens leaves no room for an "
                    f"answer in its model, which reads {player.positions}; show less, play fewer "
                    "turns, name a model with a longer context, or set truncate"
                )
            return seat
    return None


def readable(
    nodes: Sequence[Node[Any]],
    node: Node[Any],
    observed: Mapping[str, Observation],
    players: Mapping[str, Player],
) -> dict[str, Observation]:
    """Return the observations at a node where the episode is truncated. An observation that leaves
    no room for an answer has no token ids. The arguments are those of `overlong`."""
    result = {}
    for seat, observation in observed.items():
        positions = players[seat].positions
        fits = positions is None or _with(observation, nodes, node, seat) < positions
        result[seat] = observation if fits else replace(observation, tokens=())
    return result


def _with(observation: Observation, nodes: Sequence[Node[Any]], node: Node[Any], seat: str) -> int:
    """Return the number of tokens in an agent's context with an observation at a node, which does
    not have it yet."""
    before = 0 if observation.fresh else context_tokens(nodes, node, seat)
    return before + len(observation.tokens)


def check_length(agent: str, tokens: int, positions: int | None) -> None:
    """Errors: TaskError if an observation of `tokens` tokens leaves no room for an answer within
    the maximum length of the agent's model."""
    if positions is not None and tokens >= positions:
        raise TaskError(
            f"task.observe: agent '{agent}' was given {tokens} tokens, and its model reads "
            f"{positions}; show less, or name a model with a longer context"
        )
