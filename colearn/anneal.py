"""What falls away over a share of the training budget, on a straight line."""

from __future__ import annotations

from .errors import ConfigError


def left(anneal: float | None, done: float) -> float:
    """The part that is left, 1 to 0, when the share `done` of the budget is used and the share
    `anneal` is what it takes; None: all of it stays."""
    return 1.0 if anneal is None else max(0.0, 1.0 - done / anneal)


def check_anneal(anneal: float | None) -> None:
    """Errors: ConfigError for a share that is none."""
    if anneal is not None and not 0.0 < anneal <= 1.0:
        raise ConfigError(f"anneal: must lie above 0 and up to 1, got {anneal}")
