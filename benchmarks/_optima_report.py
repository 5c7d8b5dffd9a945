"""The table and the figure of benchmarks/optima.py, from its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from colearn.comparison.curves import colour
from colearn.comparison.statistics import Estimate, estimate, mean_band

REFERENCES = {"optimum": "-", "memoryless": "-.", "open_loop": ":"}
"""With their lines."""
MORE = ("#22262b", "#7a4a00", "#5b2a86", "#a50f15")
Runs = Sequence[Mapping[str, Any]]


def write_report(runs: Runs, known: Mapping[str, Mapping[str, float]], out: Path | None) -> str:
    """The markdown tables; with `out` also table.md, curves.png and references.json in it."""
    methods = list(dict.fromkeys(run["method"] for run in sorted(runs, key=_order)))
    text = "\n".join([_reference_table(known), "", _value_table(runs, known, methods)])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "references.json").write_text(json.dumps(known, indent=1) + "\n")
        (out / "table.md").write_text(text + "\n")
        _draw(runs, known, methods).savefig(out / "curves.png", dpi=110)
    return text


def _order(run: Mapping[str, Any]) -> tuple[int, str]:
    from optima import METHODS

    return list(METHODS).index(run["method"]), run["method"]


def _reference_table(known: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        "| exact value of | " + " | ".join(known) + " |",
        "|---|" + "---|" * len(known),
    ]
    names = {
        "optimum": "the best joint policy",
        "memoryless": "the best that sees turn and latest observation",
        "open_loop": "the best that sees the turn only",
        "uniform": "legal actions, all alike",
    }
    for key, name in names.items():
        cells = [f"{values[key]:.4g}" for values in known.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _value_table(
    runs: Runs, known: Mapping[str, Mapping[str, float]], methods: Sequence[str]
) -> str:
    lines = [
        "| value, [95%], % of the optimum | " + " | ".join(known) + " |",
        "|---|" + "---|" * len(known),
    ]
    for method in methods:
        cells = []
        for problem, reference in known.items():
            found = estimate(
                [
                    run["curve_values"][-1]
                    for run in runs
                    if (run["method"], run["problem"]) == (method, problem)
                ]
            )
            cells.append(_cell(found, reference["optimum"]))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(found: Estimate | None, optimum: float) -> str:
    if found is None:
        return ""
    low_high = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{low_high} {100 * found.mean / optimum:.0f}%"


def _draw(runs: Runs, known: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> Figure:
    columns = min(3, len(known))
    rows = -(-len(known) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.6 * rows + 0.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    handles: dict[str, Any] = {}
    for panel, (problem, reference) in zip(panels, known.items(), strict=False):
        for number, method in enumerate(methods):
            mine = [run for run in runs if (run["method"], run["problem"]) == (method, problem)]
            if not mine:
                continue
            last = min(run["curve_steps"][-1] for run in mine)
            steps = np.linspace(0, last, 60)
            mean, low, high = mean_band(
                [np.interp(steps, run["curve_steps"], run["curve_values"]) for run in mine]
            )
            style = "--" if "expectile" in method else "-"
            [line] = panel.plot(steps, mean, style, color=_tone(number), linewidth=1.6)
            panel.fill_between(steps, low, high, color=_tone(number), alpha=0.13, linewidth=0)
            handles.setdefault(method, line)
        for name, style in REFERENCES.items():
            line = panel.axhline(reference[name], linestyle=style, color="#22262b", linewidth=1)
            handles.setdefault(name.replace("_", " "), line)
        best, floor = reference["optimum"], reference["uniform"]
        if floor < -20:  # the untrained value would flatten everything else
            floor = min(reference["open_loop"], 0) * 5
        panel.set_ylim(floor - 0.05 * (best - floor), best + 0.08 * (best - floor))
        panel.set_title(problem)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        panel.set_xlabel("environment steps (joint actions)", fontsize=8)
    for panel in panels[len(known) :]:
        panel.set_visible(False)
    panels[0].set_ylabel("exact value")
    names = [*methods, *(name.replace("_", " ") for name in REFERENCES)]
    order = [name for name in names if name in handles]
    figure.legend(
        [handles[name] for name in order],
        order,
        loc="outside upper center",
        ncols=5,
        frameon=False,
        fontsize=8,
    )
    return figure


def _tone(number: int) -> str:
    """The comparison's seven colours, then four more."""
    return colour(number) if number < 7 else MORE[number - 7]
