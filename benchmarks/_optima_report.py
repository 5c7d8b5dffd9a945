"""The tables and the figure of benchmarks/optima.py, from its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _optima_problems import METHODS, PROBLEMS, VARIANTS, references
from matplotlib.figure import Figure

from colearn.runs.over_seeds import MeanEstimate, estimate, mean_band
from colearn.runs.report.curves import colour

REFERENCES = {"optimum": "-", "memoryless": "-.", "open_loop": ":"}
"""With their lines."""
SHARE = 0.9
"""Of the optimum: what the table of joint actions counts up to."""
Runs = Sequence[Mapping[str, Any]]
Known = Mapping[str, Mapping[str, float]]


def write_report(runs: Runs, out: Path | None) -> str:
    """The markdown tables; with `out` also table.md, curves.png and references.json in it."""
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
            *(table for problem in known if (table := _variant_table(runs, known, problem))),
        ]
    ).strip()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "references.json").write_text(json.dumps(known, indent=1) + "\n")
        (out / "table.md").write_text(text + "\n")
        _draw(runs, known).savefig(out / "curves.png", dpi=110)
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
    return f"{summary.mean:.2f}{low_high} {100 * summary.mean / optimum:.1f}%, {summary.seeds}"


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
                cells.append(_reached(curves, SHARE * reference["optimum"]))
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
                rows[-1] += [_cell(_final(runs_of), optimum), _reached(curves, SHARE * optimum)]
            cold = [_final(runs_of, "curve_cold") for runs_of in by_method.values()]
            if cold != [_final(runs_of) for runs_of in by_method.values()]:
                cells = [part for one in cold for part in (_cell(one, optimum), "")]
                rows.append([f"{variant}, the same weights at 0.2", *cells])
    head = [title for method in methods for title in (method, f"until {SHARE:.0%}")]
    return _table([f"{problem}, seeds {min(seeds)} to {max(seeds)}", *head], rows)


def _draw(runs: Runs, known: Known) -> Figure:
    columns = min(3, len(known))
    rows = -(-len(known) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.6 * rows + 0.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    handles: dict[str, Any] = {}
    for panel, (problem, reference) in zip(panels, known.items(), strict=False):
        for number, method in enumerate(_methods(runs)):
            for variant, style in (("recipe", "-"), ("one pass", "--")):
                curves = [
                    (run["curve_steps"], run["curve_values"])
                    for run in _of(runs, method, problem, variant)
                ]
                name = f"{method}{', one pass' if variant == 'one pass' else ''}"
                _band(panel, handles, name, curves, style, colour(number))
        for name, style in REFERENCES.items():
            line = panel.axhline(reference[name], linestyle=style, color="#22262b", linewidth=1)
            handles.setdefault(name.replace("_", " "), line)
        best, floor = reference["optimum"], reference["uniform"]
        if floor < -20:  # the untrained value would flatten everything else
            floor = min(reference["open_loop"], 0) * 5
        panel.set_ylim(floor - 0.05 * (best - floor), best + 0.08 * (best - floor))
        longest = [
            run["curve_steps"][-1]
            for run in runs
            if run["problem"] == problem and run["variant"] == "recipe"
        ]
        if longest:
            panel.set_xlim(0, max(longest))
        panel.set_title(problem)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        panel.set_xlabel("environment steps (joint actions)", fontsize=8)
    for panel in panels[len(known) :]:
        panel.set_visible(False)
    panels[0].set_ylabel("exact value")
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    return figure


def _band(
    panel: Any,
    handles: dict[str, Any],
    name: str,
    curves: Sequence[tuple[Sequence[float], Sequence[float]]],
    style: str,
    tone: str,
) -> None:
    """Mean and 95% band over seeds, up to where the shortest curve ends."""
    if not curves:
        return
    steps = np.linspace(0, min(at[-1] for at, _ in curves), 60)
    mean, low, high = mean_band([np.interp(steps, at, values) for at, values in curves])
    [line] = panel.plot(steps, mean, style, color=tone, linewidth=1.6)
    panel.fill_between(steps, low, high, color=tone, alpha=0.13, linewidth=0)
    handles.setdefault(name, line)
