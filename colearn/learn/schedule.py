"""The learning rate's schedule: warm-up, then constant or down to zero."""

from __future__ import annotations

import math

from colearn.config import OptimizerSettings


def schedule(settings: OptimizerSettings, step: int, total: int | None) -> float:
    """Factor of the learning rate at optimiser step `step` (from 0)."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    if settings.schedule == "constant" or not total or total <= settings.warmup_steps:
        return 1.0
    done = min((step - settings.warmup_steps) / (total - settings.warmup_steps), 1.0)
    return 1.0 - done if settings.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
