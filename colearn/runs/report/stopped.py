"""States in the report which runs callbacks ended before their budget was used up, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.runs.record import Run

from .result_table import ResultCell, ResultTable
from .show import first_sentences


def stopped(runs: Sequence[Run]) -> dict[int, str]:
    """The reasons why callbacks ended runs, by seed."""
    return {run.seed: run.record.stopped for run in runs if run.record.stopped is not None}


def stopped_note(by_algorithm: Mapping[str, Mapping[int, str]]) -> str:
    """Returns a sentence for each run that ended early, of the first ones; "" if there is none."""
    sentences = [
        f"{label}, seed {seed}, ended early: {reason}."
        for label, by_seed in by_algorithm.items()
        for seed, reason in by_seed.items()
    ]
    return first_sentences(sentences, " The table has the other such runs.")


def stopped_table(by_algorithm: Mapping[str, Mapping[int, str]]) -> ResultTable:
    """A row for each run that ended early."""
    return ResultTable(
        name="stopped",
        title="Runs that ended early",
        note="Runs that a callback ended before their budget was used up.",
        columns=("Reason",),
        rows=tuple(
            (f"{label}, seed {seed}", (ResultCell(text=reason),))
            for label, by_seed in by_algorithm.items()
            for seed, reason in by_seed.items()
        ),
    )
