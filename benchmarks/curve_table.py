"""Curves of a comparison as a table: any metric of its runs, by share of the training budget.

    python benchmarks/curve_table.py FOLDER --metrics f1 reranker/similarity [--parts 4]

One row for each metric and algorithm, with the mean over seeds. A metric of evaluations is read at
the evaluation nearest to each point of training (start, quarters, end), whose last value has
Student's 95% interval. A metric of updates, such as `rewriter/similarity` or `return/rewriter`, is
averaged over each part of training; a part without updates is `-`. A metric that both have is the
evaluations'.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path

import numpy as np

from colearn.errors import CheckpointError
from colearn.runs.over_seeds import estimate
from colearn.runs.record import Run
from colearn.runs.report.source import read_source


def at_points(run: Run, metric: str, parts: int) -> list[float] | None:
    """The evaluation nearest to each point 0, 1/parts, ..., 1; None if none has the metric."""
    lines = [line for line in run.evaluations if line.metrics.get(metric) is not None]
    if not lines:
        return None
    steps = np.array([line.environment_steps for line in lines], dtype=float)
    points = np.linspace(0.0, steps.max(), parts + 1)
    values = [lines[int(np.argmin(abs(steps - point)))].metrics[metric] for point in points]
    return [float(value) for value in values if value is not None]


def over_parts(run: Run, metric: str, parts: int) -> list[float] | None:
    """The mean over the updates of each part of training, NaN for a part without any; None if no
    update has the metric."""
    lines = [line for line in run.updates if line.metrics.get(metric) is not None]
    if not lines:
        return None
    groups = np.array_split(np.array([line.metrics[metric] for line in lines]), parts)
    return [float(group.mean()) if len(group) else nan for group in groups]


def row(runs: Sequence[Run], metric: str, parts: int) -> str | None:
    """The cells of a metric over the seeds of an algorithm; None where it has none."""
    for read, lead in ((at_points, 0), (over_parts, 1)):
        found = [values for run in runs if (values := read(run, metric, parts)) is not None]
        if found:
            columns = [
                [value for value in part if not isnan(value)] for part in zip(*found, strict=True)
            ]
            means = [f"{np.mean(column):.3f}" if column else "-" for column in columns]
            ends = estimate(columns[-1])
            if ends is not None and ends.low is not None and ends.high is not None:
                means[-1] += f" [{ends.low:.3f}, {ends.high:.3f}]"
            return " | ".join([*[""] * lead, *means])
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metrics", nargs="+", required=True)
    parser.add_argument("--parts", type=int, default=4)
    given = parser.parse_args(arguments)
    try:
        source = read_source(given.folder)
    except CheckpointError as error:
        parser.exit(1, f"{error}\n")
    points = " | ".join(f"{part}/{given.parts}" for part in range(1, given.parts))
    print(f"| metric | algorithm | seeds | start | {points} | end |")
    print("|---" * (given.parts + 4) + "|")
    for metric in given.metrics:
        for label in source.compared.algorithms:
            runs = [run for run in source.runs if run.algorithm == label]
            cells = row(runs, metric, given.parts)
            if cells is not None:
                print(f"| {metric} | {label} | {len(runs)} | {cells} |")


if __name__ == "__main__":
    main()
