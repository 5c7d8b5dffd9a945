"""Builds the learner of a network of a run."""

from __future__ import annotations

from colearn.config import CriticSettings, ResolvedRun
from colearn.contract import Learner, NetworkKey
from colearn.models.network import Network


def build_learner(run: ResolvedRun, key: NetworkKey, network: Network) -> Learner:
    """Return a learner of the run's kind, or the ridge learner for a critic whose head is solved in
    closed form. Errors: as for `LearnerKind.build`."""
    name, settings = str(key), run.learners[key]
    if isinstance(settings, CriticSettings) and settings.head == "ridge":
        from .ridge import RidgeLearner

        return RidgeLearner(name, network, settings, token_budget=run.token_budget)
    return run.learner.build(
        name,
        network,
        settings,
        token_budget=run.token_budget,
        entropy=key.kind == "actor" and run.parts.loss.needs_entropy,
    )
