"""Parses a `.dpomdp` file's header: agents, discount, states, start, actions, observations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colearn.errors import ConfigError, nearest

from ._tokens import Entry, Token
from .model import Array

KEYS = ("agents", "discount", "values", "states", "start", "actions", "observations")
TABLES = ("T", "O", "R")
_START_AMONG = ("start include", "start exclude")
MOST_AGENTS = 32
MOST_ENTRIES = 100_000_000
"""Maximum number of entries of R(s, a, s', o): 800 MB as float64."""
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Header:
    """The seven entries of a header, after validation."""

    agents: tuple[str, ...]
    discount: float
    cost: bool
    states: tuple[str, ...]
    start: Array
    actions: tuple[tuple[str, ...], ...]
    observations: tuple[tuple[str, ...], ...]


def read_header(entries: Sequence[Entry], file: str, last_line: int) -> Header:
    """Parse the seven header entries, which must appear once each and in order."""
    entry_by_key = _in_order(entries, file, last_line)
    agents = entry_by_key["agents"].names(entry_by_key["agents"].words(), "agent", MOST_AGENTS)
    if entry_by_key["agents"].words()[0].whole is not None:
        agents = tuple(f"agent_{number + 1}" for number in range(len(agents)))
    states = entry_by_key["states"].names(
        entry_by_key["states"].words(), "state", math.isqrt(MOST_ENTRIES)
    )
    sets = {
        key: _per_agent(entry_by_key[key], kind, len(agents))
        for key, kind in (("actions", "action"), ("observations", "observation"))
    }
    size = len(states) ** 2 * math.prod(
        len(names) for by_agent in sets.values() for names in by_agent
    )
    if size > MOST_ENTRIES:
        raise entry_by_key["observations"].error(
            f"states x states x joint actions x joint observations are {size}; "
            f"the limit is {MOST_ENTRIES}, make the problem smaller"
        )
    return Header(
        agents=agents,
        discount=_discount(entry_by_key["discount"]),
        cost=_cost(entry_by_key["values"]),
        states=states,
        start=_start(entry_by_key["start"], states),
        **sets,
    )


def _in_order(entries: Sequence[Entry], file: str, last_line: int) -> dict[str, Entry]:
    written = [_plain(entry.key) for entry in entries]
    entry_by_key: dict[str, Entry] = {}
    for entry in entries:
        key = _plain(entry.key)
        if key not in (*KEYS, *TABLES):
            known = (*KEYS, *_START_AMONG, *TABLES)
            raise entry.error(f"unknown entry; {nearest(entry.key, known)}")
        if key in entry_by_key:
            raise entry.error(f"given twice, first at line {entry_by_key[key].line}; keep one")
        missing = next((name for name in KEYS if name not in entry_by_key), None)
        if missing is None:
            continue
        if key == missing:
            entry_by_key[key] = entry
        elif missing in written:
            raise entry.error(
                f"comes before '{missing}'; the order is {', '.join(KEYS)}, then T, O and R"
            )
        else:
            raise entry.error(f"'{missing}' is missing before it; add '{missing}:'")
    if len(entry_by_key) < len(KEYS):
        missing = KEYS[len(entry_by_key)]
        raise ConfigError(f"{file}:{last_line}: {missing}: is missing; add '{missing}:'")
    return entry_by_key


def _plain(key: str) -> str:
    return "start" if key in _START_AMONG else key


def _discount(entry: Entry) -> float:
    words = entry.words()
    value = entry.number(words[0])
    if len(words) > 1 or not 0 <= value <= 1:
        raise entry.error("must be one number from 0 to 1; 1 means no discounting", words[-1].line)
    return value


def _cost(entry: Entry) -> bool:
    words = entry.words()
    if len(words) > 1 or words[0].text not in ("reward", "cost"):
        raise entry.error(
            f"{words[-1].quoted} is out of place; write 'values: reward' or 'values: cost'",
            words[-1].line,
        )
    return words[0].text == "cost"


def _per_agent(entry: Entry, kind: str, agents: int) -> tuple[tuple[str, ...], ...]:
    lines = [
        tuple(tokens) for _, tokens in itertools.groupby(entry.words(), lambda token: token.line)
    ]
    if len(lines) != agents:
        line = lines[agents][0].line if len(lines) > agents else entry.line
        raise entry.error(
            f"{len(lines)} lines for {agents} agents; write one line per agent, a count or names",
            line,
        )
    names: list[tuple[str, ...]] = []
    joint = 1
    for tokens in lines:
        names.append(entry.names(tokens, kind, MOST_ENTRIES // joint))
        joint *= len(names[-1])
    return tuple(names)


def _start(entry: Entry, states: Sequence[str]) -> Array:
    words = entry.words()
    if entry.key != "start":
        return _start_among(entry, words, states)
    if len(words) == 1 and words[0].text == "uniform":
        return np.full(len(states), 1 / len(states))
    if len(words) == 1 and words[0].line == entry.line and _names_state(words[0]):
        return np.eye(len(states))[entry.find(words[0], "state", states)]
    start = np.array([entry.probability(token) for token in words])
    if len(start) != len(states):
        raise entry.error(
            f"{len(start)} numbers for {len(states)} states; give one per state, or 'uniform'"
        )
    if abs(start.sum() - 1) > SUM_TOLERANCE:
        raise entry.error(f"the probabilities sum to {start.sum():.6g}; they must sum to 1")
    return start / start.sum()


def _names_state(token: Token) -> bool:
    return token.whole is not None or not token.numeric


def _start_among(entry: Entry, words: Sequence[Token], states: Sequence[str]) -> Array:
    """Return a uniform distribution over the listed states, or over all others."""
    chosen = np.zeros(len(states), dtype=bool)
    for token in words:
        number = entry.find(token, "state", states)
        if chosen[number]:
            raise entry.error(f"{token.quoted} is listed twice; list each state once", token.line)
        chosen[number] = True
    if entry.key == "start exclude":
        chosen = ~chosen
    if not chosen.any():
        raise entry.error("no state is left; exclude fewer")
    return chosen / chosen.sum()
