"""Action masks: separation from the observation, check against the action space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from colearn.errors import TaskError

_OTHER_NAMES = {
    *("mask", "actions_mask", "action_masks", "legal_mask", "legal_actions", "legal_moves"),
    *("avail_actions", "available_actions", "valid_actions"),
}
"""Names of masks elsewhere."""


def unmasked_parts(agent: Any, observation: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
    """The observation without its action mask, and the mask; None if there is no mask.

    Errors: TaskError for a mask under another name than PettingZoo's.
    """
    parts = observation if isinstance(observation, Mapping) else {}
    mask = parts.get("action_mask", info.get("action_mask"))
    other = sorted(_OTHER_NAMES.intersection((*parts, *info)))
    if mask is None and other:
        raise TaskError(
            f"task.env: '{agent}' has '{other[0]}' and no 'action_mask', which is PettingZoo's "
            "name for the mask of legal actions; rename it, with one 0 or 1 for each action, or, "
            "if it is no such mask, give it another name"
        )
    if not isinstance(observation, Mapping):
        return observation, mask
    unmasked = {name: part for name, part in observation.items() if name != "action_mask"}
    return (unmasked["observation"] if unmasked.keys() == {"observation"} else unmasked), mask


def legal_actions(env: Any, agent: Any, mask: Any) -> tuple[int, ...]:
    """The numbers of the actions that a mask allows; of all actions without a mask.

    Errors: TaskError for a mask that does not fit the space.
    """
    space = env.action_space(agent)
    count = int(space.n)
    allowed = np.ones(count, bool) if mask is None else _mask(mask, agent, count)
    return tuple(int(space.start) + int(place) for place in np.flatnonzero(allowed))


def _mask(mask: Any, agent: Any, count: int) -> Any:
    """Errors: TaskError for a mask without one 0 or 1 for each action."""
    entries = np.asarray(mask)
    if entries.shape != (count,):
        shape = " x ".join(map(str, entries.shape)) or "no"
        raise TaskError(
            f"task.env: the action mask of '{agent}' has {shape} entries and its space {count} "
            "actions; give one entry, 0 or 1, for each action"
        )
    if not np.isin(entries, (0, 1)).all():
        raise TaskError(
            f"task.env: the action mask of '{agent}' has entries other than 0 and 1; give 1 for "
            "each legal action and 0 for each other one"
        )
    return entries.astype(bool)
