"""A tool that fails ends no run: every shipped task with tools plays on without its result."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colearn.contract import joint_observations
from colearn.contract.task_results import validate_outcome
from colearn.programs.workflow import Tool
from colearn.registry import task_class


async def _raises() -> Any:
    raise RuntimeError("the disk is full")


async def _sleeps() -> Any:
    await asyncio.sleep(60)


async def _object() -> Any:
    return object()


FAULTS = {
    "RuntimeError: the disk is full": (_raises, 30.0),
    "no result within 0.01 seconds": (_sleeps, 0.01),
    "has no text form": (_object, 30.0),
}
"""How a call fails, by what its caller is told, and the tool's time limit in seconds."""
WITH_TOOLS = ("code_loop", "search_extract", "search_loop", "search_mhgpo")
"""Tasks whose programs read results of tools in ways of their own."""


def _failing(tool: Tool, fault: str, failing: Sequence[bool]) -> Tool:
    """The tool, of whose calls those marked in `failing` and all later ones fail."""
    marks = iter(failing)
    fail, timeout = FAULTS[fault]

    @functools.wraps(tool.function)
    async def called(**arguments: Any) -> Any:
        fails = next(marks, True)
        return await (fail() if fails else tool.function(**arguments))

    return Tool(called, timeout=timeout if all(failing) else tool.timeout)


@pytest.mark.parametrize("name", WITH_TOOLS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    fault=st.sampled_from(sorted(FAULTS)),
    failing=st.lists(st.booleans(), max_size=3),
    seed=st.integers(0, 99),
)
def test_a_tool_that_fails_ends_no_episode_early_and_pays_nothing_infinite(
    name: str, fault: str, failing: list[bool], seed: int
) -> None:
    task = task_class(name)()
    if "seconds" in fault:
        failing = []  # the limit is the tool's, for all calls
    task.tools = tuple(_failing(tool, fault, failing) for tool in task.tools)
    rng = np.random.default_rng(seed)
    state = task.reset(task.items("train")[0], rng)
    for _ in range(task.horizon):
        shown = joint_observations(task, state)
        assert shown
        actions = {agent: task.legal_action(state, agent, rng) for agent in shown}
        outcome = task.step(state, actions, rng)
        validate_outcome(outcome, task.agents)
        state = outcome.state
        if outcome.done:
            break
    assert outcome.done
