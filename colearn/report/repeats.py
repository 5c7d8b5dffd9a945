"""Runs of rows that were not trained: what repeats another run's evaluations is no further seed."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.record import Run

_TIMES = frozenset({"response_seconds"})
"""Metrics that differ between two runs of the same models."""


def independent(runs: Sequence[Run]) -> list[Run]:
    """The runs without repeats: of runs that made no update and whose evaluations have equal
    metrics, times left out, the first one. The seed did not reach such an evaluation, so several of
    them are one draw. Trained runs count each, equal or not."""
    kept: list[Run] = []
    seen: list[list[dict[str, float | None]]] = []
    for run in runs:
        if run.record.updates == 0:
            measured = _measured(run)
            if measured in seen:
                continue
            seen.append(measured)
        kept.append(run)
    return kept


def repeats_note(label: str, runs: int, counted: int) -> str:
    """A sentence on a row whose `runs` count as `counted`; "" where each counts."""
    if runs == counted:
        return ""
    if counted == 1:
        return (
            f"{label} was not trained, and its {runs} runs have equal evaluations: "
            "they count as one seed."
        )
    return (
        f"{label} was not trained, and its {runs} runs have {counted} different evaluations: "
        f"they count as {counted} seeds."
    )


def _measured(run: Run) -> list[dict[str, float | None]]:
    return [
        {name: value for name, value in line.metrics.items() if name not in _TIMES}
        for line in run.evaluations
    ]
