"""Computes a comparison's summary from its runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from colearn.runs.over_seeds import (
    MeanEstimate,
    estimate,
    mean_band,
    on_common_grid,
    time_weighted_average,
)
from colearn.runs.record import Line, Run, RunRecord
from colearn.runs.record.time_use import bottleneck, shares

from .collapses import collapse_lead, collapse_note, collapses
from .critic_worth import critic_summary
from .finding import (
    budget_note,
    changes_note,
    compare_pairs,
    final_steps,
    headline,
    unequal_note,
)
from .repeats import independent, repeats_note
from .show import in_three_lines
from .source import Source
from .stopped import stopped, stopped_note
from .summary import (
    AXES,
    DIAGNOSTICS,
    AlgorithmSummary,
    Change,
    Curve,
    FinishedRun,
    Summary,
)

SMOOTHING = 0.05
"""Scale of the curves' moving average, as a fraction of a run's length on the axis."""

STEPS = AXES[0]

_OVERHEAD: dict[str, Callable[[RunRecord], float | None]] = {
    "iterations": lambda record: record.iterations,
    "episodes": lambda record: record.rollouts,
    "samples_per_episode": lambda record: (
        record.joint_actions / record.rollouts if record.rollouts else None
    ),
    "samples": lambda record: record.joint_actions,
    "critic_samples": lambda record: record.critic_joint_actions or None,
    "generated_tokens": lambda record: record.generated_tokens,
    "updates": lambda record: record.updates,
    "wall_seconds": lambda record: record.wall_seconds,
    "peak_memory_gb": lambda record: record.peak_memory_bytes / 1e9,
}

_NOT_NEGATIVE = dict.fromkeys(("turns", "tokens_per_turn", "response_seconds"), (0.0, None))
"""Ranges of the metrics of every task that are times or counts."""
_OWN = (*_NOT_NEGATIVE, "cut_answers", "overflow")

RETURNS = ("return", "exact_return")
"""Metrics in the same unit as a task's optimum."""


def summarise(source: Source) -> Summary:
    """The summary of the finished runs of a comparison."""
    finished = {
        label: [run for run in source.runs if run.algorithm == label]
        for label in source.compared.algorithms
        if any(run.algorithm == label for run in source.runs)
    }
    groups = {label: independent(runs) for label, runs in finished.items()}
    judged = source.compared.headline
    finals = {label: _finite(_ends(runs, judged.metric)[1]) for label, runs in groups.items()}
    budget = source.compared.environment_steps
    algorithms = {
        label: _summarise_algorithm(
            label,
            runs,
            judged.metric,
            told=_told(label, runs, len(finished[label]), budget),
        )
        for label, runs in groups.items()
    }
    pairs = compare_pairs({label: values for label, values in finals.items() if values}, judged)
    changes = {label: algorithm.metrics[judged.metric] for label, algorithm in algorithms.items()}
    optima = {run.record.optimum for run in source.runs} - {None}
    finding = headline({k: (c.first, c.last, c.gain) for k, c in changes.items()}, pairs, judged)
    collapsed = {label: algorithm.collapses for label, algorithm in algorithms.items()}
    sentences = [
        collapse_lead(collapsed),
        *(budget_note(k, budget, final_steps(v)) for k, v in groups.items()),
        stopped_note({k: a.stopped for k, a in algorithms.items()}),
        unequal_note({label: final_steps(runs) for label, runs in groups.items()}),
        changes_note(source.changes),
        *(repeats_note(k, len(runs), len(groups[k])) for k, runs in finished.items()),
        collapse_note(collapsed),
        *(a.critic.sentence for a in algorithms.values() if a.critic is not None),
    ]
    head, notes = in_three_lines(finding, sentences)
    return Summary(
        compared=source.compared,
        headline=head,
        notes=notes,
        optimum=optima.pop() if len(optima) == 1 and judged.metric in RETURNS else None,
        missing=list(source.missing),
        runs=[_summarise_run(run, source.folder, judged.metric) for run in source.runs],
        algorithms=algorithms,
        pairs=pairs,
    )


def _told(
    label: str, runs: Sequence[Run], finished: int, budget: int | None
) -> dict[str, MeanEstimate | None]:
    """The figures of the notes on an algorithm's budget and repeats, for the table of overhead."""
    figures: dict[str, Sequence[float]] = {}
    if budget is not None and budget_note(label, budget, final_steps(runs)):
        figures |= {"environment_steps": final_steps(runs), "budget": [budget] * len(runs)}
    if repeats_note(label, finished, len(runs)):
        figures |= {"runs": [finished] * len(runs), "counted": [len(runs)] * len(runs)}
    return {name: estimate(values, least=0.0) for name, values in figures.items()}


def _summarise_algorithm(
    label: str,
    runs: Sequence[Run],
    judged: str,
    *,
    told: Mapping[str, MeanEstimate | None],
) -> AlgorithmSummary:
    times = [shares(line.metrics for line in run.updates) for run in runs]
    time_use = {
        key: estimate([of_run.get(key) for of_run in times], least=0.0)
        for key in dict.fromkeys(key for of_run in times for key in of_run)
    }
    names = dict.fromkeys(
        [judged, *(name for run in runs for e in run.evaluations for name in e.metrics)]
    )
    return AlgorithmSummary(
        seeds=[run.seed for run in runs],
        metrics={name: change(runs, name) for name in names},
        overhead={
            **{
                name: estimate([read(run.record) for run in runs], least=0.0)
                for name, read in _OVERHEAD.items()
            },
            **told,
            **_costs(runs),
        },
        curves=_known({axis: curve(runs, axis, _evaluated(judged), judged) for axis in AXES}),
        training=curve(runs, STEPS, lambda run: _values(run.updates, "return"), metric="return"),
        metrics_curves=_known(
            {
                name: curve(runs, STEPS, _evaluated(name), name)
                for name in names
                if name != judged and name not in _OWN
            }
        ),
        time_use=time_use,
        bottleneck=bottleneck({key: share.mean for key, share in time_use.items() if share}),
        critic=critic_summary(label, runs),
        collapses=collapses(runs),
        stopped=stopped(runs),
        diagnostics=_known({n: curve(runs, STEPS, _diagnosed(n)) for n in DIAGNOSTICS}),
    )


def _costs(runs: Sequence[Run]) -> dict[str, MeanEstimate | None]:
    """Cost of each of the task's services, by the service's name. A run that did not use a service
    has a cost of 0."""
    names = dict.fromkeys(name for run in runs for name in run.record.costs)
    return {n: estimate([run.record.costs.get(n, 0.0) for run in runs], least=0.0) for n in names}


def _ends(runs: Sequence[Run], metric: str) -> tuple[list[float | None], list[float | None]]:
    first = [run.evaluations[0].metrics.get(metric) for run in runs]
    return first, [run.evaluations[-1].metrics.get(metric) for run in runs]


def change(runs: Sequence[Run], metric: str) -> Change:
    """Computes a metric's change from the first to the last evaluation of finished runs. The
    intervals of the ends are cut at the metric's bounds; that of the gain is not, because it judges
    the change."""
    first, last = _ends(runs, metric)
    gains = [
        None if before is None or after is None else after - before
        for before, after in zip(first, last, strict=True)
    ]
    known = bounds(runs, metric)
    return Change(
        first=estimate(first, **known), last=estimate(last, **known), gain=estimate(gains)
    )


def bounds(runs: Sequence[Run], metric: str) -> dict[str, float | None]:
    """The least and the largest value that a metric can have in any of the runs; None: unknown."""
    ranges = [
        run.record.ranges.get(metric, _NOT_NEGATIVE.get(metric, (None, None))) for run in runs
    ]
    least = [low for low, _ in ranges if low is not None]
    most = [high for _, high in ranges if high is not None]
    return {
        "least": min(least) if least and len(least) == len(runs) else None,
        "most": max(most) if most and len(most) == len(runs) else None,
    }


Points = Callable[[Run], list[tuple[Line, float]]]
"""Reads the lines of a run that have a metric, with the metric's values."""


def _evaluated(metric: str) -> Points:
    return lambda run: _values(run.evaluations, metric)


def _values(lines: Sequence[Line], metric: str) -> list[tuple[Line, float]]:
    points = ((line, line.metrics.get(metric)) for line in lines)
    return [(line, value) for line, value in points if value is not None]


def _diagnosed(name: str) -> Points:
    """Reads the mean over models of the metrics that end in `name`. Metrics of critics count only
    if `name` begins with `critic/`, and other metrics only if it does not."""

    def read(run: Run) -> list[tuple[Line, float]]:
        points = []
        for line in run.updates:
            values = [
                value for key, value in line.metrics.items() if value is not None and _is(key, name)
            ]
            if values:
                points.append((line, float(np.mean(values))))
        return points

    return read


def _is(key: str, name: str) -> bool:
    kind, _, metric = name.rpartition("/")
    return key.rpartition("/")[2] == metric and key.startswith("critic/") == (kind == "critic")


def _known(curves: Mapping[str, Curve | None]) -> dict[str, Curve]:
    return {name: result for name, result in curves.items() if result is not None}


def curve(runs: Sequence[Run], axis: str, read: Points, metric: str = "") -> Curve | None:
    """Smoothed values of all runs over an axis; None if no run has values. metric: the evaluation
    metric at whose bounds the interval is cut."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for run in runs:
        points = [(float(getattr(line, axis)), value) for line, value in read(run)]
        if points:
            x, y = zip(*points, strict=True)
            smooth = time_weighted_average(x, y, SMOOTHING * (x[-1] - x[0]))
            lines[str(run.seed)] = (list(x), smooth.tolist())
    if not lines:
        return None
    grid, rows = on_common_grid([(np.array(x), np.array(y)) for x, y in lines.values()])
    mean, low, high = mean_band(rows, **bounds(runs, metric))
    return Curve(
        x=grid.tolist(), mean=mean.tolist(), low=low.tolist(), high=high.tolist(), seeds=lines
    )


def _summarise_run(run: Run, base: Path, judged: str) -> FinishedRun:
    record, evaluations = run.record, run.evaluations
    fields = ("iteration", *AXES, "updates")
    metrics = dict.fromkeys(name for e in evaluations for name in e.metrics)
    return FinishedRun(
        algorithm=run.algorithm,
        seed=run.seed,
        files={
            name: os.path.relpath(path, base)
            for name, path in run.folder.files().items()
            if path.exists()
        },
        best=record.best,
        first=evaluations[0].metrics.get(judged),
        final=evaluations[-1].metrics.get(judged),
        iterations=record.iterations,
        rollouts=record.rollouts,
        joint_actions=record.joint_actions,
        generated_tokens=record.generated_tokens,
        updates=record.updates,
        wall_seconds=record.wall_seconds,
        peak_memory_bytes=record.peak_memory_bytes,
        evaluations={
            **{name: [getattr(e, name) for e in evaluations] for name in fields},
            **{f"metrics.{name}": [e.metrics.get(name) for e in evaluations] for name in metrics},
        },
    )


def _finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
