"""Learning-rate schedules of a run."""

from __future__ import annotations

import math

from colearn.config import OptimizerSettings


def rate_factor(settings: OptimizerSettings, step: int, done: float) -> float:
    """Return the learning-rate factor at optimiser step `step` (counted from 0), after the fraction
    `done` of the training budget. After a warm-up, the rate is constant or decays to zero (linear
    or cosine decay).

    The training budget is a number of environment steps, so the decay does not depend on how many
    optimiser steps an algorithm makes.
    """
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = min(max(done, 0.0), 1.0)
    if settings.schedule == "linear":
        return 1.0 - done
    return 1.0 if settings.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * done))
