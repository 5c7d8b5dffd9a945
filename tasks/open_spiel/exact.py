"""Enumerates every decision of a small game with the text that its player reads; computes
NashConv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from colearn.contract import Decision
from colearn.errors import ConfigError

from .games import load
from .phrasings import phrasing

Policy = Mapping[str, Mapping[str, Sequence[float]]]
"""Probabilities of the legal actions, in OpenSpiel's order, by agent and information state."""

LARGEST = 20_000
"""Maximum number of enumerated decisions, over all players."""


@lru_cache(maxsize=4)
def all_decisions(name: str, form: str) -> tuple[tuple[Decision, ...], ...]:
    """Returns the decisions of each player; a decision's `key` is OpenSpiel's information state.

    Errors: ConfigError for a game with simultaneous moves, without information states, or too
    large.
    """
    game = load(name)
    import pyspiel

    kind = game.get_type()
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL or (
        not kind.provides_information_state_string
    ):
        raise ConfigError(
            f"evaluation.exact: '{name}' is not written out as information states; set it to false"
        )
    game_text = phrasing(name, form)
    decisions: tuple[dict[str, Decision], ...] = tuple({} for _ in range(game.num_players()))
    start: tuple[tuple[tuple[str, str], ...], ...] = ((),) * game.num_players()
    pending: list[tuple[Any, tuple[tuple[tuple[str, str], ...], ...]]] = [
        (game.new_initial_state(), start)
    ]
    while pending:
        state, histories = pending.pop()
        if state.is_terminal():
            continue
        if state.is_chance_node():
            pending += [(state.child(a), histories) for a, _ in state.chance_outcomes()]
            continue
        player = int(state.current_player())
        observation, words = game_text.observation(state, player), game_text.words(state, player)
        tagged = {f"<answer>{w}</answer>" if form == "full" else w: a for w, a in words.items()}
        key = state.information_state_string(player)
        decisions[player][key] = Decision(
            key=key, history=histories[player], observation=observation, replies=tuple(tagged)
        )
        if sum(map(len, decisions)) > LARGEST:
            raise ConfigError(
                f"evaluation.exact: '{name}' has over {LARGEST} decisions; set it to false"
            )
        for reply, action in tagged.items():
            extended = (*histories[player], (observation, reply))
            after = (*histories[:player], extended, *histories[player + 1 :])
            pending.append((state.child(action), after))
    return tuple(tuple(by_key.values()) for by_key in decisions)


def equilibrium_distance(name: str, policy: Policy, agents: Sequence[str]) -> dict[str, float]:
    """NashConv, exploitability and every player's value, computed by OpenSpiel."""
    import pyspiel

    game = load(name)
    table: dict[str, list[tuple[int, float]]] = {}
    for player, agent in enumerate(agents):
        for key, actions in _legal(name)[player].items():
            table[key] = list(zip(actions, policy[agent][key], strict=True))
    tabular = pyspiel.TabularPolicy(table)
    distance = float(pyspiel.nash_conv(game, table))
    values = pyspiel.expected_returns(game.new_initial_state(), tabular, -1, True)
    return {
        "nash_conv": distance,
        "exploitability": distance / game.num_players(),
        **{f"value_{agent}": float(v) for agent, v in zip(agents, values, strict=True)},
    }


@lru_cache(maxsize=4)
def _legal(name: str) -> tuple[dict[str, tuple[int, ...]], ...]:
    """The legal actions by player and information state."""
    game = load(name)
    legal: tuple[dict[str, tuple[int, ...]], ...] = tuple({} for _ in range(game.num_players()))
    pending = [game.new_initial_state()]
    while pending:
        state = pending.pop()
        if state.is_terminal():
            continue
        if state.is_chance_node():
            pending += [state.child(action) for action, _ in state.chance_outcomes()]
            continue
        player = int(state.current_player())
        actions = tuple(map(int, state.legal_actions()))
        legal[player][state.information_state_string(player)] = actions
        pending += [state.child(action) for action in actions]
    return legal
