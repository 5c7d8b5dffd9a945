"""Checks the members of a task that every run reads before the first episode."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from colearn.errors import TaskError

from .optional import RewardStructure, refuse_unread_members
from .task import DecPOMDP


def check_frame(task: DecPOMDP[Any, Any]) -> None:
    """Check `agents`, `horizon` and `reward_range`, and that the task inherits the interface of
    each optional member that it defines.

    Whether the agents' names can be keys and folders is checked elsewhere. Errors: TaskError, one
    line that names the member.
    """
    refuse_unread_members(task)
    agents = getattr(task, "agents", None)
    if (
        not isinstance(agents, tuple)
        or not agents
        or not all(isinstance(agent, str) for agent in agents)
        or len(set(agents)) != len(agents)
    ):
        raise TaskError(
            f"task.agents: must be a tuple of different, non-empty names, got {agents!r}"
        )
    horizon = getattr(task, "horizon", None)
    if isinstance(horizon, bool) or not isinstance(horizon, Integral) or horizon < 1:
        raise TaskError(f"task.horizon: must be a whole number of 1 or more, got {horizon!r}")
    bounds = RewardStructure.of(task).reward_range
    if bounds is not None and not (
        isinstance(bounds, tuple)
        and len(bounds) == 2
        and all(isinstance(bound, Real) and math.isfinite(bound) for bound in bounds)
        and bounds[0] <= bounds[1]
    ):
        raise TaskError(
            f"task.reward_range: must be None or (low, high), both finite, got {bounds!r}"
        )
