"""Checked calls of a task's methods. Results are validated against the contract; a TaskError names
the task, the method and the item. `item` is the name from `item_name`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP, Drawable, LegalActions, PrivilegedInfo, ProgramEpisodes
from colearn.contract.seeding import Key, derive_rng
from colearn.contract.task_errors import asking
from colearn.types import Observation, Outcome

from .validate import (
    validate_items,
    validate_metrics,
    validate_observation,
    validate_outcome,
    validate_text,
)

Task = DecPOMDP[Any, Any]


def items_of(task: Task, split: str) -> Sequence[Any]:
    """Return all items of a split. A lazy `Sequence` is not copied.

    Errors: TaskError, as for all functions of this module.
    """
    with asking(task, "items", split=split):
        items = validate_items(task.items(split), split)
        return items if isinstance(items, Sequence) else list(items)


def prepared(task: Task, item: Any, name: str) -> Any:
    """Start an episode of a program; return the item with which `begin` continues it."""
    with asking(task, "prepare", name):
        return ProgramEpisodes.of(task).prepare(item)


def begin(task: Task, item: Any, rng: np.random.Generator, name: str) -> Any:
    """Return the initial state of an item."""
    with asking(task, "reset", name):
        return task.reset(item, rng)


def observations(task: Task, state: Any, item: str) -> dict[str, Observation]:
    """Return the observation, without tokens, of each acting agent in `state`."""
    with asking(task, "observe", item):
        by_agent = {
            agent: validate_observation(task.observe(state, agent), agent) for agent in task.agents
        }
    return {
        agent: observation for agent, observation in by_agent.items() if observation is not None
    }


def global_information(task: Task, state: Any, item: str) -> str:
    """The global information m_t."""
    with asking(task, "global_info", item):
        return validate_text(task.global_info(state), "global_info")


def privileged(task: Task, state: Any, item: str) -> str:
    """Return the privileged information, which is intended for centralized critics only."""
    with asking(task, "privileged_info", item):
        return validate_text(PrivilegedInfo.of(task).privileged_info(state), "privileged_info")


def measured(task: Task, state: Any, item: str) -> dict[str, float | None]:
    """The metrics of a terminal state."""
    with asking(task, "metrics", item):
        return dict(validate_metrics(task.metrics(state)))


def sent(task: Task, state: Any, actions: Mapping[str, Any], item: str) -> Any:
    """Pass a joint action to a program; return the state from which `step` executes it."""
    with asking(task, "send", item):
        return ProgramEpisodes.of(task).send(state, actions)


def step(
    task: Task, state: Any, actions: Mapping[str, Any], rng: np.random.Generator, item: str
) -> Outcome[Any]:
    """Return the outcome of a joint action. Actions are texts, or `SampledAction` objects if the
    task reads such objects."""
    with asking(task, "step", item):
        return validate_outcome(task.step(state, actions, rng), task.agents)


def transition(
    task: Task, state: Any, actions: Mapping[str, Any], keys: tuple[Key, ...], item: str
) -> Outcome[Any]:
    """Call `step` with the random generator of `keys`. This function is at module level so that it
    can be pickled."""
    return step(task, state, actions, derive_rng(*keys), item)


def legal_action(
    task: Task, state: Any, agent: str, rng: np.random.Generator, item: str
) -> str | None:
    """Return a random legal action; None if the task does not offer legal actions."""
    with asking(task, "legal_action", item):
        action = LegalActions.of(task).legal_action(state, agent, rng)
        return None if action is None else validate_text(action, "legal_action")


def rendered(task: Task, state: Any, item: str) -> str | None:
    """Return the state as text; None if the task does not render states."""
    with asking(task, "render", item):
        text = Drawable.of(task).render(state)
        return None if text is None else validate_text(text, "render")


def drawn(task: Task, state: Any, item: str) -> str | None:
    """Return the episode as SVG; None if the task does not draw episodes."""
    with asking(task, "svg", item):
        text = Drawable.of(task).svg(state)
        return None if text is None else validate_text(text, "svg")


def pictured(task: Task, state: Any, item: str) -> dict[str, Any] | None:
    """Return the state as a picture in plain data; None if the task has no picture."""
    with asking(task, "picture", item):
        picture = Drawable.of(task).picture(state)
        return None if picture is None else picture.plain()
