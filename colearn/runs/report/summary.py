"""Summary statistics of a comparison, from which all figures and tables are made."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from colearn.runs.over_seeds import MeanEstimate
from colearn.runs.record import Best
from colearn.runs.record.collapse import Finding, Sign

from .critic_worth import CriticSummary
from .finding import PairFinding
from .source import Compared, Missing

AXES = ("environment_steps", "generated_tokens", "wall_seconds")
"""Horizontal axes of the curves; each is a field of an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Mean of a metric at the first evaluation, at the last evaluation, and of the change within
    each seed."""

    first: MeanEstimate | None
    last: MeanEstimate | None
    gain: MeanEstimate | None


EXPLAINED_VARIANCE = "critic/explained_variance"

DIAGNOSTICS = {
    "grad_norm": "Gradient norm of the actors",
    "critic/grad_norm": "Gradient norm of the critics",
    EXPLAINED_VARIANCE: "Variance of returns that the critic explains",
    "kl": "KL to the reference (nats per token)",
    "entropy": "Entropy (nats per token)",
    "nll": "Negative log-likelihood of sampled tokens (nats)",
    "clip_fraction": "Share of clipped terms",
    "similarity": "Similarity of a group's answers (word F1)",
}
"""Titles of the update metrics that are plotted. The keys are the ends of the metrics' names. The
plotted values are means over models or agents."""

OBJECTIVE = "objective"
"""Name of the metric of the training objective. With the suffix `/AGENT`, the name denotes one
agent's objective."""


def is_objective(name: str) -> bool:
    """Whether a metric is the training objective, for all agents or for one."""
    return name.partition("/")[0] == OBJECTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A smoothed metric of one algorithm over one axis."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    seeds: dict[str, tuple[list[float], list[float]]]
    """By seed, the x values and smoothed metric values at its evaluations or updates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmSummary:
    seeds: list[int]
    metrics: dict[str, Change]
    """Every evaluation metric, including `return`; response_seconds is in seconds."""
    overhead: dict[str, MeanEstimate | None]
    """Means per run: counts, wall_seconds in seconds, peak_memory_gb in 10^9 bytes, and costs of
    the task's services by name."""
    curves: dict[str, Curve]
    """Curves of the headline metric of evaluations. The keys are the axes."""
    training: Curve | None
    """Mean return of each update's training episodes over environment steps."""
    metrics_curves: dict[str, Curve]
    """All other evaluation metrics and the training objective, over environment steps."""
    time_use: dict[str, MeanEstimate | None]
    """Share of an iteration's time that each activity of each generator or model takes; empty
    without a timeline."""
    bottleneck: str
    """One line that summarises the means of `time_use`; empty without a timeline."""
    critic: CriticSummary | None
    """Statistics of the algorithm's critics; None without a critic."""
    collapses: dict[int, Finding]
    """What the last updates of collapsed runs show, by seed."""
    stopped: dict[int, str]
    """Why callbacks ended runs before their budget was used up, by seed."""
    diagnostics: dict[str, Curve]
    """Curves of update diagnostics over environment steps. The keys are those of `DIAGNOSTICS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run; the lists have one entry per evaluation."""

    algorithm: str
    seed: int
    files: dict[str, str]
    """Paths of existing files, relative to the report's folder."""
    best: Best | None
    """The evaluation with the best headline metric."""
    first: float | None
    """The headline metric at the first evaluation."""
    final: float | None
    iterations: int
    rollouts: int
    joint_actions: int
    generated_tokens: int
    updates: int
    wall_seconds: float
    peak_memory_bytes: int
    evaluations: dict[str, list[Any]]
    """One list for each name, with one entry per evaluation. The names are iteration,
    environment_steps, generated_tokens, updates, wall_seconds, and every metric."""


def _plain(value: Any) -> Any:
    return value.name.lower() if isinstance(value, Sign) else BaseModel.model_dump(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    compared: Compared
    headline: str
    """At most three lines: the finding, and the notes that fit."""
    notes: list[str]
    """The sentences that the headline leaves out."""
    optimum: float | None
    """Optimum of the headline metric, if that metric is a return."""
    missing: list[Missing]
    runs: list[FinishedRun]
    algorithms: dict[str, AlgorithmSummary]
    pairs: list[PairFinding]
    """Probability of improvement of x over y in the final headline metric, for every pair of
    algorithms x and y."""

    def write(self, path: Path) -> None:
        data = dataclasses.asdict(self)
        text = json.dumps(data, indent=1, allow_nan=False, default=_plain)
        path.write_text(text + "\n", encoding="utf-8")
