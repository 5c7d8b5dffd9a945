"""Interface for phrasing an environment's observations and actions as text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from colearn.errors import ConfigError, TaskError
from colearn.registry.own_code import own_function
from colearn.text.plain_data import in_order

__all__ = ["Phrasing", "written"]

WAYS = ("Rock", "Paper", "Scissors", "Spock", "Lizard")
"""PettingZoo's names of the first choices, in its order."""


MOST = 1024
"""The largest number of numbers in an observation that the plain phrasing writes."""


def written(observation: Any) -> str:
    """Returns the text of an observation without leaving out any number; sets are sorted.

    The text of a number does not depend on the numbers beside it. Each row of an array is a line
    in brackets; empty lines separate the matrices of an array of more than two dimensions.

    Errors: TaskError for an object without a text of its own.
    """
    if isinstance(observation, str):
        return observation
    parts = _parts(observation)
    if isinstance(parts, Mapping):
        return "\n".join(f"{name}: {written(part)}" for name, part in parts.items())
    if parts is not None:
        return "\n".join(map(written, parts))
    own: Any = type(observation).__repr__
    if own is object.__repr__:
        raise TaskError(
            f"task.phrasing: an observation has a {type(observation).__name__}, which has no text "
            "of its own; give it a __repr__, or name a Phrasing that writes it"
        )
    return _rows(np.asarray(observation))


def _parts(observation: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """The parts of a container, which may have different shapes; None for an array or number."""
    if isinstance(observation, Mapping):
        return observation
    if isinstance(observation, tuple | list | deque):
        return observation
    if isinstance(observation, Set):
        return in_order(observation)
    if is_dataclass(observation) and not isinstance(observation, type):
        return {f.name: getattr(observation, f.name) for f in fields(observation)}
    entries = np.asarray(observation)
    return list(entries) if entries.ndim and entries.dtype == object else None


def _rows(entries: Any) -> str:
    """The text of an array; of a number, if the array has no dimensions."""
    if entries.ndim > 1 and entries.size:
        return ("\n" * (entries.ndim - 1)).join(map(_rows, entries))
    if entries.ndim:
        return f"[{', '.join(map(_number, entries.ravel()))}]"
    return _number(entries[()])


def _number(number: Any) -> str:
    """The text of an array's entry: the shortest of a float with four significant digits."""
    if isinstance(number, np.floating):
        rounded = float(f"{float(str(number)):.4g}")
        return repr(rounded + 0.0).removesuffix(".0")  # -0.0 + 0.0 is 0.0
    return str(number) if isinstance(number, np.integer) else np.array2string(np.asarray(number))


def _size(observation: Any) -> int:
    """The number of numbers in an observation."""
    if isinstance(observation, str):
        return 0
    parts = _parts(observation)
    if parts is None:
        return int(np.size(observation))
    return sum(map(_size, parts.values() if isinstance(parts, Mapping) else parts))


class Phrasing:
    """The words of an environment; override the methods whose text should change. `env`: the
    environment's name in these words."""

    def __init__(self, env: str) -> None:
        self.env = env

    def opening(self, agent: str, agents: Sequence[str]) -> str:
        """Text before the agent's first observation."""
        others = ", ".join(name for name in agents if name != agent)
        return f"You are {agent} in {self.env}, with {others}."

    def observation(self, agent: str, observation: Any) -> str:
        """Text of the environment's observation: all numbers of an array; a line or more for each
        part of a dictionary. Errors: TaskError for more than `MOST` numbers."""
        if (size := _size(observation)) > MOST:
            raise TaskError(
                f"task.phrasing: an observation has {size:,} numbers; name a Phrasing that writes "
                "what matters"
            )
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


def phrasing(env: str, chosen: str | None, name: str | None = None) -> Phrasing:
    """The phrasing of an environment: the class that `chosen` names, else the environment's own,
    else the plain one. `name`: what an environment outside PettingZoo calls itself.

    Errors: ConfigError if `chosen` is not a module:Class of a Phrasing.
    """
    module, _, function = env.rpartition(":")
    shown = (name or function) if module else env
    if chosen is None:
        known = env.replace(".", "/")
        return _KNOWN.get(known if "/" in known else f"classic/{known}", Plain)(shown)
    kind = own_function(chosen, "task.phrasing")
    if not (isinstance(kind, type) and issubclass(kind, Phrasing)):
        raise ConfigError(
            f"task.phrasing: '{chosen}' is no Phrasing; derive it from Phrasing of "
            "colearn.tasks.pettingzoo.phrasing"
        )
    return kind(shown)
