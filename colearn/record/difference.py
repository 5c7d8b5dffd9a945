"""Whether two configs make the same run."""

from __future__ import annotations

from typing import Any

BUDGET = "train.environment_steps"
FREE = (
    "compare",
    BUDGET,
    "run.device",
    "run.step_workers",
    "run.trackers",
    "run.checkpoint_every",
    "run.checkpoint_minutes",
    "run.keep_checkpoints",
)
"""What may be set anew when a run is resumed: its length, its place, and what is kept of it. Its
length only where nothing follows it: half of a schedule is no shorter schedule."""


def first_difference(one: Any, other: Any) -> str | None:
    """The dotted key of the first setting in which two plain configs differ, `FREE` ones aside."""
    found = _first(one, other, "")
    lengths = value_at(one, BUDGET), value_at(other, BUDGET)
    if found is None and scheduled(other) is not None and lengths[0] != lengths[1]:
        return BUDGET
    return found


def told_difference(key: str, one: Any, other: Any) -> str:
    """What `first_difference` has found, in words."""
    follows = f", and {scheduled(other)} follows it" if key == BUDGET else ""
    return f"{key} was {value_at(one, key)}, is {value_at(other, key)}{follows}"


def scheduled(config: Any) -> str | None:
    """The dotted key of the first setting of a plain config that falls over the whole budget."""
    for part in ("loss", "advantage", "value_loss"):
        if value_at(config, f"algorithm.{part}.anneal_fraction") is not None:
            return f"algorithm.{part}.anneal_fraction"
    for where in ("agents", "players"):
        for name, seat in config.get(where, {}).items():
            if value_at(seat, "sampling.anneal") is not None:
                return f"{where}.{name}.sampling.anneal"
    sections = {f"models.{name}": model for name, model in config.get("models", {}).items()}
    sections["critic"] = config.get("critic")
    for where, section in sections.items():
        if section and section.get("schedule", "constant") != "constant":
            return f"{where}.schedule"
    return None


def _first(one: Any, other: Any, where: str) -> str | None:
    if where in FREE or one == other:
        return None
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return where
    for key in dict.fromkeys((*one, *other)):
        found = _first(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
        if found is not None:
            return found
    return None


def value_at(config: Any, key: str) -> Any:
    """What a plain config holds under a dotted key; None where it has no such key."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config
