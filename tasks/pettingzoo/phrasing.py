"""Interface for phrasing an environment's observations and actions as text."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from colearn.errors import ConfigError, TaskError
from colearn.registry.own_code import own_function
from colearn.text.plain_data import in_order

WAYS = ("Rock", "Paper", "Scissors", "Spock", "Lizard")
"""PettingZoo's names of the first choices, in its order."""


def written(observation: Any) -> str:
    """Returns the text of an observation without leaving out any number; sets are sorted.

    Errors: TaskError for an object without a text of its own.
    """
    if isinstance(observation, str):
        return observation
    if isinstance(observation, Mapping):
        return "\n".join(f"{name}: {written(part)}" for name, part in observation.items())
    if isinstance(observation, tuple | list | deque):  # parts may have different shapes
        return "\n".join(map(written, observation))
    if isinstance(observation, Set):
        return written(in_order(observation))
    if is_dataclass(observation) and not isinstance(observation, type):
        return written({f.name: getattr(observation, f.name) for f in fields(observation)})
    entries = np.asarray(observation)
    if entries.ndim and entries.dtype == object:
        return written(list(entries))
    own: Any = type(observation).__repr__
    if own is object.__repr__:
        raise TaskError(
            f"task.phrasing: an observation has a {type(observation).__name__}, which has no text "
            "of its own; give it a __repr__, or name a Phrasing that writes it"
        )
    return np.array2string(entries, separator=",", threshold=sys.maxsize)


class Phrasing:
    """The words of an environment; override the methods whose text should change."""

    def __init__(self, env: str) -> None:
        self.env = env

    def opening(self, agent: str, agents: Sequence[str]) -> str:
        """Text before the agent's first observation."""
        others = ", ".join(name for name in agents if name != agent)
        return f"You are {agent} in {self.env.rpartition(':')[2]}, with {others}."

    def observation(self, agent: str, observation: Any) -> str:
        """Text of the environment's observation: all numbers of an array; a line or more for each
        part of a dictionary."""
        return written(observation)

    def word(self, agent: str, action: int) -> str:
        """The reply for an action."""
        return str(action)

    def situation(self, agent: str, observation: Any, legal: Sequence[int]) -> str:
        """The observation and the legal actions."""
        words = ", ".join(self.word(agent, action) for action in legal)
        return f"{self.observation(agent, observation)}\nAnswer with one of: {words}"


class Plain(Phrasing):
    """The plain phrasing: PettingZoo's arrays and action numbers."""


class RockPaperScissors(Phrasing):
    """Words of classic/rps_v2: the other player's last choice, and the names of the choices."""

    def situation(self, agent: str, observation: Any, legal: Sequence[int]) -> str:
        number = int(observation)  # one more than the last choice stands for none
        last = self.word(agent, number) if number in legal else "nothing yet"
        words = ", ".join(self.word(agent, action) for action in legal)
        return f"The other chose {last}.\nAnswer with one of: {words}"

    def word(self, agent: str, action: int) -> str:
        return WAYS[action] if action < len(WAYS) else f"Action {action + 1}"


class BoardWording(Phrasing):
    """Words of classic/tictactoe_v3 and connect_four_v3: the agent's own stones are X and the other
    player's are O; rows are listed from the top."""

    def observation(self, agent: str, observation: Any) -> str:
        own, other = np.asarray(observation)[..., 0], np.asarray(observation)[..., 1]
        marks = np.where(own == 1, "X", np.where(other == 1, "O", "_"))
        return "You play X.\n" + "\n".join("".join(row) for row in marks)


class TicTacToeWording(BoardWording):
    """Words of tictactoe_v3: cells as (row,column), from 0 at the top left. The environment numbers
    cells column by column."""

    def observation(self, agent: str, observation: Any) -> str:
        return super().observation(agent, np.swapaxes(np.asarray(observation), 0, 1))

    def word(self, agent: str, action: int) -> str:
        column, row = divmod(action, 3)
        return f"({row},{column})"


_KNOWN = {
    "classic/connect_four_v3": BoardWording,
    "classic/rps_v2": RockPaperScissors,
    "classic/tictactoe_v3": TicTacToeWording,
}


def phrasing(env: str, chosen: str | None) -> Phrasing:
    """The phrasing of an environment: the class that `chosen` names, else the environment's own,
    else the plain one.

    Errors: ConfigError if `chosen` is not a module:Class of a Phrasing.
    """
    name = env.replace(".", "/")
    if chosen is None:
        return _KNOWN.get(name if "/" in name else f"classic/{name}", Plain)(env)
    kind = own_function(chosen, "task.phrasing")
    if not (isinstance(kind, type) and issubclass(kind, Phrasing)):
        raise ConfigError(f"task.phrasing: '{chosen}' is no Phrasing; derive it from one")
    return kind(env)
