"""Numbers that are not finite: one wording for every learner."""

from __future__ import annotations


def loss_error(name: str, update: int, micro_batch: int, rows: int, value: float) -> str:
    """Which loss, counted from 1, and what to do."""
    return (
        f"{name}: the loss of update {update}, micro-batch {micro_batch} ({rows} rows) is {value}; "
        "lower the learning rate or look at the rewards of this batch"
    )


def gradient_error(name: str, update: int, norm: float) -> str:
    """Which gradient, counted from 1, and what to do."""
    return (
        f"{name}: the gradient of update {update} is {norm}; lower the learning rate or the loss's "
        "scale"
    )
