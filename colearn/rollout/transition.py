"""One transition of a task, checked against its contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.contract import DecPOMDP
from colearn.seeding import Key, derive_rng
from colearn.types import Outcome, Prompt

from .validate import validate_observation, validate_outcome


def prompts(task: DecPOMDP[Any, Any], state: Any) -> dict[str, Prompt]:
    """What each acting agent is shown in `state`.

    Errors: TaskError where the task breaks its contract.
    """
    shown = {
        agent: validate_observation(task.observe(state, agent), agent) for agent in task.agents
    }
    return {agent: prompt for agent, prompt in shown.items() if prompt is not None}


def transition(
    task: DecPOMDP[Any, Any], state: Any, actions: Mapping[str, str], keys: tuple[Key, ...]
) -> Outcome[Any]:
    """Step `state` with the randomness of `keys`; module level, so that it pickles.

    Errors: TaskError where the task breaks its contract.
    """
    return validate_outcome(task.step(state, actions, derive_rng(*keys)), task.agents)
