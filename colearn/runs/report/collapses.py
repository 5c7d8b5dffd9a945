"""States in the report which runs end in a collapse, since when, and the first remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.runs.record import Run
from colearn.runs.record.collapse import CollapseWatch, Finding, sentence, shown

from .result_table import ResultCell, ResultTable
from .show import first_sentences

_NAMED = 3
"""Maximum number of algorithms that a headline names."""


def collapses(runs: Sequence[Run]) -> dict[int, Finding]:
    """What the last updates show of each run that has collapsed, by seed."""
    ended: dict[int, Finding] = {}
    for run in runs:
        watch = CollapseWatch(optimum=run.record.optimum)
        found = None
        for line in run.updates:
            found = watch.update(line.iteration, line.metrics)
        if found is not None and not found.solved:
            ended[run.seed] = found
    return ended


def collapse_lead(by_algorithm: Mapping[str, Mapping[int, Finding]]) -> str:
    """Returns a sentence short enough for every headline that names the first algorithms with a
    collapsed run; "" if no run has collapsed."""
    labels = [label for label, by_seed in by_algorithm.items() if by_seed]
    if not labels:
        return ""
    more = " and others" if len(labels) > _NAMED else ""
    return f"Collapsed, or nothing is learned: {', '.join(labels[:_NAMED])}{more}."


def collapse_note(by_algorithm: Mapping[str, Mapping[int, Finding]]) -> str:
    """Returns a sentence for each collapsed run, of the first ones; "" if no run has collapsed."""
    sentences = [
        f"{label}, seed {seed}: {sentence(found)}."
        for label, by_seed in by_algorithm.items()
        for seed, found in by_seed.items()
    ]
    return first_sentences(sentences, " The table has the other collapsed runs.")


def collapse_table(by_algorithm: Mapping[str, Mapping[int, Finding]]) -> ResultTable:
    """A row for each collapsed run."""
    return ResultTable(
        name="collapse",
        title="Collapsed runs",
        note="What the last updates of a run show: since which update, the mean return of the last "
        "updates, and the best return of a training episode.",
        columns=("Since update", "Mean return", "Best episode", "Signs"),
        rows=tuple(
            (
                f"{label}, seed {seed}",
                (
                    ResultCell(text=str(found.since)),
                    ResultCell(text=shown(found.mean)),
                    ResultCell(text=shown(found.best)),
                    ResultCell(text=found.what),
                ),
            )
            for label, by_seed in by_algorithm.items()
            for seed, found in by_seed.items()
        ),
    )
