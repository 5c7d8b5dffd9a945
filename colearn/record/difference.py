"""Whether two configs make the same run."""

from __future__ import annotations

from typing import Any

FREE = (
    "compare",
    "train.environment_steps",
    "run.device",
    "run.step_workers",
    "run.trackers",
    "run.checkpoint_every",
    "run.checkpoint_minutes",
    "run.keep_checkpoints",
)
"""What may be set anew when a run is resumed: its length, its place, and what is kept of it."""


def first_difference(one: Any, other: Any, where: str = "") -> str | None:
    """The dotted key of the first setting in which two plain configs differ, `FREE` ones aside."""
    if where in FREE or one == other:
        return None
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return where
    for key in dict.fromkeys((*one, *other)):
        found = first_difference(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
        if found is not None:
            return found
    return None


def value_at(config: Any, key: str) -> Any:
    """What a plain config holds under a dotted key; None where it has no such key."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config
