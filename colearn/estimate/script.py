"""Reads a task's prompts at each turn from scripted episodes of a few items."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Observation
from colearn.errors import TaskError

_PROBES = 4
"""Number of items from which lengths of observations are read, besides the longest."""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The texts of one scripted turn."""

    seen: Mapping[str, Observation]
    """Prompts of the acting agents."""
    global_info: str
    """The global information m_t."""
    hidden: str
    """Privileged information, for centralised critics only."""


Script = tuple[ScriptedTurn, ...]
"""The turns of the longest possible episode of one item."""


def probed_items(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> list[Any]:
    """Return the first items, and the first item with the largest number of turns."""
    probes = list(items[:_PROBES])
    longest, turns = _longest(task, items), CheckedTask(task).horizon_of
    if turns(longest) > max(map(turns, probes)):
        probes.append(longest)
    return probes


def read_scripts(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> list[Script]:
    """Play each item. Errors: TaskError if no agent acts in any of these items."""
    scripts = [read_script(task, item, number) for number, item in enumerate(items)]
    if not any(scripts):
        raise TaskError(
            f"task.observe: no agent acts in the first {len(scripts)} items, so there is nothing "
            "to learn; return an observation at turn 0"
        )
    return scripts


def read_script(task: DecPOMDP[Any, Any], item: Any, number: int) -> Script:
    """Play one item with legal actions if the task offers them, else with empty actions.

    If the episode ends before the horizon, the missing turns repeat the last turn that was reached.
    If agents act in sequence, each missing turn repeats the last turn of the same agents."""
    rng = derive_rng("estimate", number)
    checked = CheckedTask(task, item_name(item))
    state = checked.reset(item, rng)
    turns: list[ScriptedTurn] = []
    horizon = checked.horizon_of(item)
    for _ in range(horizon):
        prompts = checked.observe(state)
        if not prompts:
            break
        turns.append(
            ScriptedTurn(prompts, checked.global_info(state), checked.privileged_info(state))
        )
        actions = {agent: checked.legal_action(state, agent, rng) or "" for agent in prompts}
        outcome = checked.step(state, actions, rng)
        state = outcome.state
        if outcome.last:
            break
    period = len({tuple(turn.seen) for turn in turns})
    later_turns = itertools.islice(itertools.cycle(turns[-period:]), horizon - len(turns))
    return (*turns, *later_turns)


def _longest(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> Any:
    """Return the first item with the largest number of turns. The search stops at the first item
    with `task.horizon` turns, because reading further items can be slow: some tasks generate items
    on demand."""
    longest, turns = items[0], 0
    for item in items:
        its_turns = CheckedTask(task).horizon_of(item)
        if its_turns > turns:
            longest, turns = item, its_turns
        if turns == task.horizon:
            break
    return longest
