"""Computes those metrics of an iteration that are not metrics of its update: returns of the
rollouts, and the timeline of generators and learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import TokenEngine
from colearn.contract.timeline import Timed, Timeline
from colearn.contract.types import Tree
from colearn.rollout.counts import Counts
from colearn.runs.record.time_use import time_use

from .collapse_metrics import collapse_metrics
from .evaluation.played import lost_episodes, mean_objective, mean_overflow, mean_returns
from .team import Team


def rollout_metrics(
    trees: Sequence[Tree[Any]], counts: Counts, run: ResolvedRun
) -> dict[str, float]:
    """Metrics of an iteration's trees: mean returns and objectives, truncated and lost episodes,
    and what shows a collapse."""
    models = {
        agent: settings.model
        for agent, settings in run.config.agents.items()
        if settings.model in run.config.models and run.config.models[settings.model].trained
    }
    pays = run.task.pays
    return {
        **mean_returns(trees, pays),
        **mean_objective(trees, run.parts.credit),
        "overflow": mean_overflow(trees),
        **lost_episodes(trees, run.task),
        **collapse_metrics(trees, pays, models),
        "tokens_per_action": counts.tokens_per_action,
    }


class RunClock:
    """Records the timeline of a run's generators and learners, and reads the results of the
    generators' parity checks."""

    def __init__(self, team: Team) -> None:
        self.timeline, self._timed = Timeline(), _timed(team)
        for name, source in self._timed.items():
            source.timeline, source.timed_as = self.timeline, name

    def metrics(self, started: float, rolled: float, ended: float) -> dict[str, float]:
        """Timeline metrics of an iteration whose rollout ran from `started` to `rolled` and whose
        update ran from `rolled` to `ended`. Discards earlier records."""
        spans = self.timeline.take(started, ended)
        return {
            "seconds/rollout": rolled - started,
            "seconds/update": ended - rolled,
            **time_use(spans, self._timed, ended - started),
            **_parity_gaps(self._timed),
        }


def _parity_gaps(timed: Mapping[str, Timed]) -> dict[str, float]:
    """For each generator, the largest log-probability difference from the trained model in the last
    check."""
    return {
        f"parity_gap/{name}": source.gap
        for name, source in timed.items()
        if isinstance(source, TokenEngine) and source.gap is not None
    }


def _timed(team: Team) -> dict[str, Timed]:
    """Generators and learners by their names in the timeline. A learner is named after its model.
    If there are several generators, each one is named after its first player."""
    timed: dict[str, Timed] = {}
    for engine in team.engines:
        first = team.first_player(engine)
        several = len(team.engines) > 1
        timed[f"generator/{first}" if several else "generator"] = engine
    for key, learner in team.learners.items():
        timed[f"critic/{key.model}" if key.kind == "critic" else key.model] = learner
    return timed
