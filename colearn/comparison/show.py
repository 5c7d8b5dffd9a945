"""Numbers as the tables and the headline show them."""

from __future__ import annotations

from .statistics import MeanEstimate


def show_number(value: float) -> str:
    """Three significant digits without an exponent; from 1000 on whole, with commas."""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    if abs(value) < 5e-5:
        return "0"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.4f}"


def show_estimate(value: MeanEstimate | None) -> str:
    """`mean [low, high]`, the mean alone where there is no interval, a dash for no value."""
    if value is None:
        return "-"
    if value.low is None or value.high is None:
        return show_number(value.mean)
    return f"{show_number(value.mean)} [{show_number(value.low)}, {show_number(value.high)}]"
