"""The learning rate's schedule: warm-up, then constant or down to zero."""

from __future__ import annotations

import math

from colearn.config import OptimizerSettings


def schedule(settings: OptimizerSettings, step: int, done: float) -> float:
    """Factor of the learning rate at optimiser step `step` (from 0), when the share `done` of the
    training budget has been used. The budget counts environment steps, whatever their number of
    optimiser steps, so algorithms with the same settings decay alike."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = min(max(done, 0.0), 1.0)
    if settings.schedule == "linear":
        return 1.0 - done
    return 1.0 if settings.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * done))
