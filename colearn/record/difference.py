"""Compares two configs to determine whether they define the same run."""

from __future__ import annotations

from typing import Any

BUDGET = "train.environment_steps"
FREE = (
    "compare",
    BUDGET,
    "run.device",
    "run.host",
    "run.step_workers",
    "run.threads",
    "run.trackers",
    "run.callbacks",
    "run.checkpoint_every",
    "run.checkpoint_minutes",
    "run.keep_checkpoints",
    "run.restarts",
)
"""Settings that may change when a run is resumed. The budget may change only if no schedule depends
on it, because the part of a schedule that has already run was computed for the old budget."""


def first_difference(one: Any, other: Any) -> str | None:
    """Return the dotted key of the first setting outside `FREE` in which two plain configs differ.
    If only the budget differs and a schedule depends on it, return the budget's key."""
    difference = _first(one, other, "")
    lengths = value_at(one, BUDGET), value_at(other, BUDGET)
    if difference is None and scheduled(other) is not None and lengths[0] != lengths[1]:
        return BUDGET
    return difference


def told_difference(key: str, one: Any, other: Any) -> str:
    """Describe the difference that `first_difference` returned."""
    follows = f", and {scheduled(other)} follows it" if key == BUDGET else ""
    return f"{key} was {value_at(one, key)}, is {value_at(other, key)}{follows}"


def scheduled(config: Any) -> str | None:
    """The dotted key of the first setting that depends on the used fraction of the budget, or
    None."""
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
    if 0.0 < (value_at(config, "critic.frozen") or 0.0) < 1.0:
        return "critic.frozen"
    return None


def _first(one: Any, other: Any, where: str) -> str | None:
    if where in FREE or one == other:
        return None
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return where
    for key in dict.fromkeys((*one, *other)):
        difference = _first(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
        if difference is not None:
            return difference
    return None


def value_at(config: Any, key: str) -> Any:
    """Value of a dotted key in a plain config; None without such a key."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config
