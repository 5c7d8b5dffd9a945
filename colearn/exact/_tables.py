"""Builds the T, O and R arrays of a `.dpomdp` file, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._header import SUM_TOLERANCE, Header
from ._tokens import Entry, Numbers, Token
from .model import Array

_FORMS = {
    "T": "'T: joint action : state : next state : p', with a row after 'state :' or a matrix "
    "after 'joint action :'",
    "O": "'O: joint action : next state : joint observation : p', with a row after "
    "'next state :' or a matrix after 'joint action :'",
    "R": "'R: joint action : state : next state : joint observation : r', with a row after "
    "'next state :' or a matrix after 'state :'",
}


class Tables:
    """Holds the T, O and R arrays under construction, and for each row of T and O the line of the
    file that last set it.

    The rewards' last two axes, s' and o, keep length 1 until an entry distinguishes their elements.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        actions = int(np.prod([len(names) for names in header.actions]))
        self.states = len(header.states)
        self.joint_observations = int(np.prod([len(names) for names in header.observations]))
        self.transition = np.zeros((actions, self.states, self.states))
        self.observation = np.zeros((actions, self.states, self.joint_observations))
        self.reward = np.zeros((actions, self.states, 1, 1))
        self._lines = {key: np.zeros((actions, self.states), dtype=np.int64) for key in "TO"}

    def add(self, entry: Entry) -> None:
        """Apply one entry, which overwrites earlier values."""
        *keys, values = entry.fields()
        fewest, most = (2, 4) if entry.key == "R" else (1, 3)
        if not fewest <= len(keys) <= most:
            line = entry.tokens[-1].line if entry.tokens else entry.line
            raise entry.error(
                f"{len(keys) + 1} parts between colons; write {_FORMS[entry.key]}", line
            )
        actions = entry.select_joint(keys[0], "action", self.header.actions)
        if entry.key == "R":
            self._add_reward(entry, actions, keys[1:], values)
        else:
            self._add_probabilities(entry, actions, keys[1:], values)

    def _add_probabilities(
        self,
        entry: Entry,
        actions: Numbers,
        keys: Sequence[Sequence[Token]],
        values: Sequence[Token],
    ) -> None:
        table = self.transition if entry.key == "T" else self.observation
        rows = self._states(entry, keys[0]) if keys else np.arange(self.states)
        columns = np.arange(table.shape[2])
        if len(keys) == 2 and entry.key == "T":
            columns = self._states(entry, keys[1])
        elif len(keys) == 2:
            columns = self._joint_observations(entry, keys[1])
        height = 1 if keys else self.states
        width = 1 if len(keys) == 2 else len(columns)
        if len(values) == 1 and values[0].text in ("uniform", "identity") and len(keys) < 2:
            block = _block(entry, values[0], height, width, square=not keys)
            lines = np.full(height, values[0].line)
        else:
            numbers = [entry.probability(token) for token in values]
            block = _shaped(entry, numbers, height, width)
            lines = np.array([token.line for token in values[::width]])
        table[np.ix_(actions, rows, columns)] = block
        self._lines[entry.key][np.ix_(actions, rows)] = lines

    def _add_reward(
        self,
        entry: Entry,
        actions: Numbers,
        keys: Sequence[Sequence[Token]],
        values: Sequence[Token],
    ) -> None:
        states = self._states(entry, keys[0])
        after = self._states(entry, keys[1]) if len(keys) > 1 else np.arange(self.states)
        observations = np.arange(self.joint_observations)
        if len(keys) == 3:
            observations = self._joint_observations(entry, keys[2])
        height = self.states if len(keys) == 1 else 1
        width = 1 if len(keys) == 3 else self.joint_observations
        block = _shaped(entry, [entry.number(token) for token in values], height, width)
        after = self._index_axis(2, after, height > 1)
        observations = self._index_axis(3, observations, width > 1)
        self.reward[np.ix_(actions, states, after, observations)] = block

    def _index_axis(self, axis: int, chosen: Numbers, differs: bool) -> Numbers:
        """Return indices into the reward table along an axis. The axis is stored with length 1
        until an entry sets only some of its positions."""
        size = self.states if axis == 2 else self.joint_observations
        if self.reward.shape[axis] == size:
            return chosen
        if not differs and len(chosen) == size:
            return np.zeros(1, dtype=np.intp)
        self.reward = np.repeat(self.reward, size, axis=axis)
        return chosen

    def _states(self, entry: Entry, tokens: Sequence[Token]) -> Numbers:
        return entry.select(tokens, "state", self.header.states)

    def _joint_observations(self, entry: Entry, tokens: Sequence[Token]) -> Numbers:
        return entry.select_joint(tokens, "observation", self.header.observations)

    def normalised(self, key: str, file: str, last_line: int) -> Array:
        """Divide each row of the table T or O by its sum. The sum must be 1 within the tolerance.

        Errors: ConfigError with the line that last set a row that does not sum to 1.
        """
        table = self.transition if key == "T" else self.observation
        sums: NDArray[np.float64] = table.sum(axis=2)
        wrong = np.argwhere(abs(sums - 1) > SUM_TOLERANCE)
        if len(wrong):
            action, state = (int(number) for number in wrong[0])
            row = f"the row of joint action '{self._action(action)}' and "
            row += "state" if key == "T" else "next state"
            row += f" '{self.header.states[state]}'"
            line = int(self._lines[key][action, state])
            if line == 0:
                raise Entry(file, key, last_line, ()).error(f"{row} was never set; add it")
            raise Entry(file, key, line, ()).error(
                f"{row} sums to {sums[action, state]:.6g}; it must sum to 1"
            )
        return table / sums[:, :, None]

    def rewards(self) -> Array:
        """Return R(s, a, s', o), to be maximised, in full shape; a broadcast view if possible."""
        reward = 0.0 - self.reward if self.header.cost else self.reward
        return np.broadcast_to(reward, (*self.transition.shape, self.joint_observations))

    def _action(self, number: int) -> str:
        shape = tuple(len(names) for names in self.header.actions)
        numbers = np.unravel_index(number, shape)
        return " ".join(
            names[int(k)] for names, k in zip(self.header.actions, numbers, strict=True)
        )


def _block(entry: Entry, word: Token, height: int, width: int, *, square: bool) -> Array:
    if word.text == "uniform":
        return np.full((height, width), 1 / width)
    if not square or height != width:
        raise entry.error("'identity' needs a square matrix; write numbers or 'uniform'", word.line)
    return np.eye(height)


def _shaped(entry: Entry, numbers: Sequence[float], height: int, width: int) -> Array:
    if len(numbers) != height * width:
        shape = f"a matrix of {height} rows of {width}" if height > 1 else f"{width}"
        raise entry.error(f"{len(numbers)} numbers, expected {shape}; complete the entry")
    return np.array(numbers).reshape(height, width)
