"""Plots curves over steps, tokens and time: the mean, the interval and each seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .plots import drawn_text, svg_of, write_files
from .result_table import csv_text
from .summary import AXES, Curve, Summary

_LABELS = {
    "environment_steps": "environment steps (joint actions)",
    "generated_tokens": "generated tokens",
    "wall_seconds": "training time (s)",
}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
"""Okabe and Ito's palette, without the colours that are invisible on white or on black."""
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)))
_INK, _GRID, _BACKGROUND = "#22262b", "#d9dde2", "#ffffff"
_DARK = {_INK: "#dfe3e8", _GRID: "#3a4048", _BACKGROUND: "#171a1e"}


def colour(index: int) -> str:
    """Colour of algorithm number `index`, from a palette for colour-blind readers."""
    return _COLOURS[index % len(_COLOURS)]


def write_curves(summary: Summary, out: Path) -> None:
    """Write `curves_figure` as curves.png, .svg and .pdf."""
    figure = curves_figure(summary)
    figure.savefig(out / "curves.png", dpi=140)
    write_files(figure, svg_of(figure), out / "curves")


def curves_figure(summary: Summary) -> Figure:
    """Plot the curves over the three axes side by side, with a legend."""
    figure = Figure(figsize=(13.5, 4.6), layout="constrained", facecolor=_BACKGROUND)
    panels = figure.subplots(1, len(AXES), sharey=True)
    for panel, axis in zip(panels, AXES, strict=True):
        _draw(panel, summary, axis)
    panels[0].set_ylabel(drawn_text(f"evaluation {summary.compared.headline.label}"))
    handles = _legend(summary)
    columns = min(len(handles), 6)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def curves_csv(summary: Summary) -> str:
    """All curves as CSV: the mean and its interval (`seed` is empty), then each seed's values.
    `curve` begins with `evaluation/`, `training/` or `update/`."""
    rows: list[tuple[str | float | None, ...]] = []
    for label, algorithm in summary.algorithms.items():
        judged, steps = summary.compared.headline.metric, AXES[0]
        named = [(f"evaluation/{judged}", axis, one) for axis, one in algorithm.curves.items()]
        if algorithm.training is not None:
            named.append(("training/return", steps, algorithm.training))
        named += [(f"evaluation/{n}", steps, one) for n, one in algorithm.metrics_curves.items()]
        named += [(f"update/{n}", steps, one) for n, one in algorithm.diagnostics.items()]
        for name, axis, curve in named:
            band = zip(curve.x, curve.mean, curve.low, curve.high, strict=True)
            rows += [(label, name, axis, None, *point) for point in band]
            for seed, points in curve.seeds.items():
                values = zip(*points, strict=True)
                rows += [(label, name, axis, seed, x, y, None, None) for x, y in values]
    titles = ("algorithm", "curve", "axis", "seed", "x", "value", "low", "high")
    return csv_text([(title, [row[n] for row in rows]) for n, title in enumerate(titles)])


def panel_figure(summary: Summary, axis: str) -> Figure:
    """Plot the headline metric over one axis as a figure that is legible at a phone's width."""
    figure = Figure(figsize=(4.2, 3.4), layout="constrained", facecolor="none")
    panel = figure.subplots()
    _draw(panel, summary, axis)
    panel.set_ylabel(drawn_text(f"evaluation {summary.compared.headline.label}"))
    return figure


def training_figure(summary: Summary) -> Figure | None:
    """Plot the training return as the evaluation panels; None if no run has updates."""
    trained = {n: a.training for n, a in enumerate(summary.algorithms.values()) if a.training}
    if not trained:
        return None
    figure = Figure(figsize=(4.2, 3.4), layout="constrained", facecolor="none")
    panel = figure.subplots()
    for index, curve in trained.items():
        _draw_curve(panel, curve, index)
    panel.set_xlabel(_LABELS["environment_steps"])
    panel.set_ylabel("return in training")
    _style(panel)
    return figure


def small_figure(curves: Mapping[int, Curve]) -> Figure:
    """Plot curves over environment steps as a small figure. The keys of `curves` are the numbers of
    the algorithms."""
    figure = Figure(figsize=(3.4, 2.2), layout="constrained", facecolor="none")
    panel = figure.subplots()
    for index, curve in curves.items():
        _draw_curve(panel, curve, index)
    _style(panel)
    return figure


def calibration_figure(points: Sequence[tuple[float, float]], index: int) -> Figure:
    """Plot mean return against mean value, with the diagonal of a calibrated critic."""
    figure = Figure(figsize=(3.4, 2.6), layout="constrained", facecolor="none")
    panel = figure.subplots()
    values, returns = zip(*points, strict=True)
    ends = min(*values, *returns), max(*values, *returns)
    panel.plot(ends, ends, color=_INK, linewidth=1, linestyle="--")
    panel.plot(values, returns, color=colour(index), marker="o", markersize=4, linewidth=1)
    panel.set_xlabel("value")
    panel.set_ylabel("return")
    panel.yaxis.label.set_color(_INK)
    _style(panel)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_major_formatter("{x:g}")
    return figure


def darkened(svg: str) -> str:
    """Recolours an SVG for dark pages, which is faster than drawing it twice."""
    return re.sub("|".join(_DARK), lambda match: _DARK[match[0]], svg)


def _draw(panel: Any, summary: Summary, axis: str) -> None:
    for index, algorithm in enumerate(summary.algorithms.values()):
        if axis in algorithm.curves:
            _draw_curve(panel, algorithm.curves[axis], index)
    if summary.optimum is not None:
        panel.axhline(summary.optimum, color=_INK, linestyle="--", linewidth=1)
    panel.set_xlabel(_LABELS[axis])
    _style(panel)


def _style(panel: Any) -> None:
    panel.xaxis.label.set_color(_INK)
    panel.yaxis.label.set_color(_INK)
    panel.set_facecolor(_BACKGROUND)
    panel.tick_params(colors=_INK, length=3)
    panel.grid(color=_GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.margins(x=0.02)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    panel.xaxis.set_major_formatter(FuncFormatter(_thousands))
    for side, spine in panel.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_INK)


def _draw_curve(panel: Any, curve: Curve, index: int) -> None:
    tint, dash = colour(index), _dash(index)
    for x, y in curve.seeds.values():
        panel.plot(x, y, color=tint, linewidth=0.7, alpha=0.4)
    if len(curve.x) == 1:
        error = [
            [max(0.0, curve.mean[0] - curve.low[0])],
            [max(0.0, curve.high[0] - curve.mean[0])],
        ]
        panel.errorbar(curve.x, curve.mean, error, color=tint, marker="o", capsize=4)
        return
    panel.fill_between(curve.x, curve.low, curve.high, color=tint, alpha=0.18, linewidth=0)
    panel.plot(curve.x, curve.mean, color=tint, linewidth=2, linestyle=dash)


def _legend(summary: Summary) -> Sequence[Any]:
    handles: list[Any] = [
        Line2D([], [], color=colour(n), linestyle=_dash(n), linewidth=2, label=drawn_text(label))
        for n, label in enumerate(summary.algorithms)
    ]
    handles.append(Patch(color="#8c8c8c", alpha=0.35, linewidth=0, label="95% interval"))
    if summary.optimum is not None:
        handles.append(Line2D([], [], color=_INK, linestyle="--", label="optimum"))
    return handles


def _dash(index: int) -> Any:
    return _DASHES[index // len(_COLOURS) % len(_DASHES)]


def _thousands(value: float, _: int) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e4 else f"{value:g}"
