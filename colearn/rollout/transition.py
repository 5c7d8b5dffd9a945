"""The calls of a task that a rollout makes: what is asked is checked against the contract, and what
goes wrong is told with the task, the method and the item. `item` is as `item_name` gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.asking import asking
from colearn.pictures import Picture
from colearn.seeding import Key, derive_rng
from colearn.types import Outcome, Prompt

from .validate import (
    validate_items,
    validate_metrics,
    validate_observation,
    validate_outcome,
    validate_text,
)

Task = DecPOMDP[Any, Any]


def items_of(task: Task, split: str) -> Sequence[Any]:
    """All items of a split; one that draws them as they are read stays as it is. Errors: TaskError,
    like all here."""
    with asking(task, "items", f"of split {split}"):
        found = validate_items(task.items(split), split)
        return found if isinstance(found, Sequence) else list(found)


def begin(task: Task, item: Any, rng: np.random.Generator, name: str) -> Any:
    """The first state."""
    with asking(task, "reset", name):
        return task.reset(item, rng)


def prompts(task: Task, state: Any, item: str) -> dict[str, Prompt]:
    """What each acting agent is shown in `state`."""
    with asking(task, "observe", item):
        shown = {
            agent: validate_observation(task.observe(state, agent), agent) for agent in task.agents
        }
    return {agent: prompt for agent, prompt in shown.items() if prompt is not None}


def told(task: Task, state: Any, item: str) -> str:
    """m_t."""
    with asking(task, "global_info", item):
        return validate_text(task.global_info(state), "global_info")


def privileged(task: Task, state: Any, item: str) -> str:
    """What only a central critic is told."""
    with asking(task, "privileged_info", item):
        return validate_text(task.privileged_info(state), "privileged_info")


def measured(task: Task, state: Any, item: str) -> dict[str, float]:
    """The metrics of a last state."""
    with asking(task, "metrics", item):
        return dict(validate_metrics(task.metrics(state)))


def step(
    task: Task, state: Any, actions: Mapping[str, str], rng: np.random.Generator, item: str
) -> Outcome[Any]:
    """What a joint action leads to."""
    with asking(task, "step", item):
        return validate_outcome(task.step(state, actions, rng), task.agents)


def transition(
    task: Task, state: Any, actions: Mapping[str, str], keys: tuple[Key, ...], item: str
) -> Outcome[Any]:
    """`step` with the randomness of `keys`; module level, so that it pickles."""
    return step(task, state, actions, derive_rng(*keys), item)


def legal_action(
    task: Task, state: Any, agent: str, rng: np.random.Generator, item: str
) -> str | None:
    """A legal action, where the task draws any."""
    with asking(task, "legal_action", item):
        action = task.legal_action(state, agent, rng)
        return None if action is None else validate_text(action, "legal_action")


def rendered(task: Task, state: Any, item: str) -> str | None:
    """The state as text, where the task gives it as that."""
    with asking(task, "render", item):
        text = task.render(state)
        return None if text is None else validate_text(text, "render")


def drawn(task: Task, state: Any, item: str) -> str | None:
    """The episode as a drawing, where the task draws it."""
    with asking(task, "svg", item):
        text = task.svg(state)
        return None if text is None else validate_text(text, "svg")


def pictured(task: Task, state: Any, item: str) -> dict[str, Any] | None:
    """The state as a picture in plain data, where the task gives one."""
    with asking(task, "picture", item):
        picture: Picture | None = task.picture(state)
        return None if picture is None else picture.plain()
