"""Checks whether a folder belongs to a comparison. A comparison can be extended by more algorithms,
seeds or steps."""

from __future__ import annotations

from pathlib import Path

import colearn
from colearn.errors import CheckpointError
from colearn.models.sources import fetch_models
from colearn.runs.record import (
    ComparisonEntry,
    ComparisonFolder,
    ComparisonRecord,
    RunFolder,
    first_difference,
)

from .outside import check_files, recorded_files
from .plan import Plan


def check_claim(plan: Plan, out: Path) -> tuple[str, ...]:
    """Returns the files that changed since the comparison in `out` was begun, if that is meant.

    Errors: CheckpointError, which names the first setting or file that differs, if `out` contains
    another comparison or a single run; ConfigError if the budget is smaller than the budget of the
    runs in `out`.
    """
    remedy = "give another --out or delete the folder"
    folder = ComparisonFolder(out)
    if RunFolder(out).status != "not started":
        raise CheckpointError(f"{out} holds a single run, not a comparison; {remedy}")
    if not folder.exists():
        if folder.runs_on_disk():
            raise CheckpointError(f"{out} holds runs that no comparison here made; {remedy}")
        return ()
    if difference := _difference(plan, folder.record()):
        raise CheckpointError(
            f"{out} holds another comparison (first difference: {difference}); {remedy}"
        )
    for run in plan.runs:
        if run.budget:
            run.folder(out).check_budget(run.budget)
    return check_files(plan.resolved.values(), out)


def _difference(plan: Plan, record: ComparisonRecord) -> str | None:
    """Returns the first setting in which the plan and the recorded comparison differ."""
    known = [(f"{label}'s ", record.settings.get(label), s) for label, s in plan.settings.items()]
    for whose, recorded, planned in [*known, ("", record.shared, plan.shared)]:
        difference = None if recorded is None else first_difference(recorded, planned)
        if difference is not None:
            return f"{whose}{difference}"
    return None


def claim(plan: Plan, out: Path, command: str | None) -> None:
    """Record `out` as the folder of this comparison. A recorded comparison can be extended by more
    algorithms, seeds and steps.

    Errors: as `check_claim`, and ConfigError for a model that the hub does not have.
    """
    for run in plan.resolved.values():
        fetch_models(run)
    changes = check_claim(plan, out)
    folder = ComparisonFolder(out)
    planned = [
        ComparisonEntry(run=run.name, algorithm=run.algorithm, seed=run.config.run.seed)
        for run in plan.runs
    ]
    settings, sources = plan.settings, recorded_files(plan.resolved.values())
    if folder.exists():
        earlier = folder.record()
        old = [entry for entry in earlier.runs if entry not in planned]
        planned = sorted([*old, *planned], key=lambda entry: entry.seed)
        settings, sources = earlier.settings | settings, earlier.sources | sources
        changes = tuple(dict.fromkeys((*earlier.changes, *changes)))
        command = command or earlier.command
    folder.write(
        ComparisonRecord(
            shared=plan.shared,
            settings=settings,
            version=colearn.__version__,
            command=command,
            algorithms=tuple(settings),
            runs=tuple(planned),
            sources=sources,
            changes=changes,
        )
    )
