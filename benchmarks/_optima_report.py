"""The tables of benchmarks/optima.py, from its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from _optima_problems import CLASSICS, METHODS, PROBLEMS, VARIANTS, references

from colearn.runs.over_seeds import MeanEstimate, estimate

SHARE = 0.9
"""Of the optimum: what the table of joint actions counts up to."""
GROUPS = 5
"""Of the table of classics: a group keeps the best of the teams whose seeds are alike modulo it."""
Runs = Sequence[Mapping[str, Any]]
Known = Mapping[str, Mapping[str, float]]


def write_report(runs: Runs, out: Path | None) -> str:
    """The markdown tables; with `out` also table.md and references.json in it."""
    played = {run["problem"] for run in runs}
    known = {name: references(PROBLEMS[name]) for name in PROBLEMS if name in played}
    recipe = [run for run in runs if run["variant"] == "recipe"]
    text = "\n\n".join(
        [
            _reference_table(known),
            _value_table(recipe, known, "sampled at 0.2", "curve_values"),
            _value_table(recipe, known, "greedy", "curve_greedy"),
            _reaching_table(runs, known),
            *(table for table in [_explained_table(recipe, known)] if table),
            *(table for table in [_kept_table(recipe, known)] if table),
            *(table for problem in known if (table := _variant_table(runs, known, problem))),
        ]
    ).strip()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "references.json").write_text(json.dumps(known, indent=1) + "\n")
        (out / "table.md").write_text(text + "\n")
    return text


def _methods(runs: Runs) -> list[str]:
    return [name for name in METHODS if any(run["method"] == name for run in runs)]


def _of(runs: Runs, method: str, problem: str, variant: str = "recipe") -> list[Mapping[str, Any]]:
    wanted = (method, problem, variant)
    return [run for run in runs if (run["method"], run["problem"], run["variant"]) == wanted]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _reference_table(known: Known) -> str:
    names = {
        "optimum": "the best joint policy",
        "memoryless": "the best that sees turn and latest observation",
        "open_loop": "the best that sees the turn only",
        "uniform": "legal actions, all alike",
    }
    rows = [
        [name, *(f"{values[key]:.4g}" for values in known.values())] for key, name in names.items()
    ]
    return _table(["exact value of", *known], rows)


def _value_table(runs: Runs, known: Known, title: str, curve: str) -> str:
    rows = []
    for method in _methods(runs):
        runs_by_problem = {problem: _of(runs, method, problem) for problem in known}
        cells = [
            _cell(_final(runs_of, curve), known[name]["optimum"])
            for name, runs_of in runs_by_problem.items()
        ]
        rows.append([method, *cells])
    return _table([f"{title}: value, [95%], % of the optimum, seeds", *known], rows)


def _final(runs: Runs, curve: str = "curve_values") -> MeanEstimate | None:
    return estimate([run[curve][-1] for run in runs])


def _cell(summary: MeanEstimate | None, optimum: float) -> str:
    if summary is None:
        return ""
    low_high = "" if summary.low is None else f" [{summary.low:.2f}, {summary.high:.2f}]"
    return (
        f"{summary.mean:.2f}{low_high} {100 * share(summary.mean, optimum):.1f}%, {summary.seeds}"
    )


def _reaching_table(runs: Runs, known: Known) -> str:
    """Joint actions until `SHARE` of the optimum, the median over seeds."""
    rows = []
    for method in _methods(runs):
        for variant in ("recipe", "one pass"):
            cells = []
            for problem, reference in known.items():
                curves = [
                    (run["curve_steps"], run["curve_values"])
                    for run in _of(runs, method, problem, variant)
                ]
                cells.append(_reached(curves, _level(reference["optimum"])))
            if any(cells):
                rows.append([f"{method}, {variant}", *cells])
    return _table([f"joint actions until {SHARE:.0%}, median (seeds that got there)", *known], rows)


def _reached(curves: Sequence[tuple[Sequence[float], Sequence[float]]], level: float) -> str:
    """The median over seeds; where it is beyond the runs, that of what each has shown."""
    if not curves:
        return ""
    steps_reached, shown = [], []
    for at, values in curves:
        first = next((a for a, v in zip(at, values, strict=True) if v >= level), None)
        steps_reached.append(float("inf") if first is None else first)
        shown.append(at[-1] if first is None else first)
    count = sum(np.isfinite(steps_reached))
    beyond = "" if np.isfinite(median(steps_reached)) else "over "
    return f"{beyond}{median(shown):,.0f} ({count} of {len(steps_reached)})"


def _explained_table(runs: Runs, known: Known) -> str:
    """The critics' explained variance by problem; empty if no run has one."""
    rows = []
    for method in _methods(runs):
        cells = []
        for problem in known:
            explained = [r.get("explained_variance") for r in _of(runs, method, problem)]
            values = [value for value in explained if value is not None]
            cells.append(f"{median(values):.2f}" if values else "")
        if any(cells):
            rows.append([method, *cells])
    title = (
        "explained variance, median over updates and seeds; below 0.5 it says nothing of critics"
    )
    return _table([title, *known], rows) if rows else ""


def _kept_table(runs: Runs, known: Known) -> str:
    """The classics by group: its first team, and the best of all its teams."""
    rows = []
    for method, problem in product(_methods(runs), CLASSICS):
        ends = {run["seed"]: run["curve_values"][-1] for run in _of(runs, method, problem)}
        optimum, floor = (known.get(problem, {}).get(key, 0.0) for key in ("optimum", "uniform"))
        whole = len(ends) // GROUPS if set(range(len(ends))) == set(ends) else 0
        for teams in sorted({min(whole, 1), whole} - {0}):
            values = [max(ends[g + GROUPS * n] for n in range(teams)) for g in range(GROUPS)]
            shares = [share(value, optimum) for value in values]
            way = [(value - floor) / (optimum - floor) for value in values]
            row = [f"{problem}, {method}, best of {teams}", f"{optimum:.3f}"]
            row += [", ".join(f"{value:.3f}" for value in values), _interval(shares)]
            rows.append([*row, f"{min(shares):.1%}", f"{fmean(way):.1%}", f"{min(way):.1%}"])
    head = (
        "optimum",
        "values by group",
        "share of the optimum",
        "worst",
        "way from uniform",
        "worst",
    )
    return _table(["classics", *head], rows) if rows else ""


def share(value: float, optimum: float) -> float:
    """Of the optimum; where that is negative, the optimum's part of the value."""
    return value / optimum if optimum > 0 else optimum / value


def _level(optimum: float) -> float:
    """The value that is `SHARE` of the optimum."""
    return optimum * SHARE if optimum > 0 else optimum / SHARE


def _interval(shares: Sequence[float]) -> str:
    found = estimate(shares)
    assert found is not None
    bounds = "" if found.low is None else f" [{found.low:.1%}, {found.high:.1%}]"
    return f"{found.mean:.1%}{bounds}"


def _variant_table(runs: Runs, known: Known, problem: str) -> str:
    """The recipe without each part; empty where nothing else was run."""
    problem_runs = [
        run for run in runs if run["problem"] == problem and run["variant"] != "one pass"
    ]
    methods = _methods(problem_runs)
    seeds = {run["seed"] for run in problem_runs if run["variant"] != "recipe"}
    if not seeds:
        return ""
    rows = []
    for variant in VARIANTS:
        by_method = {
            method: [r for r in _of(problem_runs, method, problem, variant) if r["seed"] in seeds]
            for method in methods
        }
        if any(by_method.values()):
            optimum = known[problem]["optimum"]
            rows.append([variant])
            for runs_of in by_method.values():
                curves = [(run["curve_steps"], run["curve_values"]) for run in runs_of]
                rows[-1] += [_cell(_final(runs_of), optimum), _reached(curves, _level(optimum))]
            cold = [_final(runs_of, "curve_cold") for runs_of in by_method.values()]
            if cold != [_final(runs_of) for runs_of in by_method.values()]:
                cells = [part for one in cold for part in (_cell(one, optimum), "")]
                rows.append([f"{variant}, the same weights at 0.2", *cells])
    head = [title for method in methods for title in (method, f"until {SHARE:.0%}")]
    return _table([f"{problem}, seeds {min(seeds)} to {max(seeds)}", *head], rows)
