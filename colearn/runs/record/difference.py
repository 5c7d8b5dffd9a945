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
    "run.accept_changes",
    "run.folders",
)
"""Settings that may change when a run is resumed. The budget may change only if no schedule depends
on it, because the part of a schedule that has already run was computed for the old budget."""


def first_difference(before: Any, after: Any) -> str | None:
    """Describe the first setting outside `FREE` in which two plain configs differ, by its dotted
    key and both values; None if there is none. The budget counts if a schedule depends on it."""
    key, follows = _first(before, after, ""), ""
    if key is None and value_at(before, BUDGET) != value_at(after, BUDGET):
        part = scheduled(after)
        key, follows = (None, "") if part is None else (BUDGET, f", and {part} follows it")
    if key is None:
        return None
    return f"{key} was {value_at(before, key)}, is {value_at(after, key)}{follows}"


def scheduled(config: Any) -> str | None:
    """The dotted key of the first setting that depends on the used fraction of the budget, or
    None."""
    for part in ("loss", "advantage", "value_loss"):
        if value_at(config, f"algorithm.{part}.anneal_fraction") is not None:
            return f"algorithm.{part}.anneal_fraction"
    for kind in ("agents", "players"):
        for name, seat in config.get(kind, {}).items():
            if value_at(seat, "sampling.anneal") is not None:
                return f"{kind}.{name}.sampling.anneal"
    sections = {f"models.{name}": model for name, model in config.get("models", {}).items()}
    sections["critic"] = config.get("critic")
    for path, section in sections.items():
        if section and section.get("schedule", "constant") != "constant":
            return f"{path}.schedule"
    if 0.0 < (value_at(config, "critic.frozen") or 0.0) < 1.0:
        return "critic.frozen"
    return None


def _first(before: Any, after: Any, path: str) -> str | None:
    if path in FREE or before == after:
        return None
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return path
    for key in dict.fromkeys((*before, *after)):
        difference = _first(before.get(key), after.get(key), f"{path}.{key}".lstrip("."))
        if difference is not None:
            return difference
    return None


def value_at(config: Any, key: str) -> Any:
    """Value of a dotted key in a plain config; None without such a key."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return config
