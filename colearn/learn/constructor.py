"""Selects the class of a run's learners."""

from __future__ import annotations

from colearn.config import CriticSettings, ModelSettings, ResolvedRun
from colearn.contract import LearnerConstructor


def constructor(run: ResolvedRun, settings: ModelSettings | CriticSettings) -> LearnerConstructor:
    """Return the constructor of the run's kind of learner, or the ridge learner's constructor for a
    critic whose head is solved in closed form."""
    if isinstance(settings, CriticSettings) and settings.head == "ridge":
        from .ridge import RidgeLearner

        return RidgeLearner
    return run.learner.constructor()
