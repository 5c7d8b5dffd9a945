"""Selects independent runs. An untrained run whose evaluations equal those of another untrained run
does not count as a seed."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.runs.record import Run

_TIMES = frozenset({"response_seconds"})
"""Timing metrics, which differ between runs of the same models."""


def independent(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs without repeats. Among runs that made no update and have equal evaluation
    metrics (apart from times), only the first counts: the seed had no effect on these runs, so
    together they are a single sample. Every trained run counts, even if it equals another run."""
    distinct: list[Run] = []
    known: list[list[dict[str, float | None]]] = []
    for run in runs:
        if run.record.updates == 0:
            measured = _measured(run)
            if measured in known:
                continue
            known.append(measured)
        distinct.append(run)
    return distinct


def repeats_note(label: str, runs: int, counted: int) -> str:
    """Returns a sentence that only `counted` of the `runs` runs in row `label` count; "" if all
    runs count."""
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
