"""Checks whether a folder belongs to a comparison. A comparison can be extended by more algorithms,
seeds or steps."""

from __future__ import annotations

from pathlib import Path

import colearn
from colearn.config import recorded_settings
from colearn.errors import CheckpointError
from colearn.record import (
    ComparisonEntry,
    ComparisonFolder,
    ComparisonRecord,
    RunFolder,
    first_difference,
)
from colearn.record.difference import told_difference

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
        if folder.unplanned_runs():
            raise CheckpointError(f"{out} holds runs that no comparison here made; {remedy}")
        return ()
    record = folder.record()
    recorded = record.digests
    unchanged = all(recorded.get(label, digest) == digest for label, digest in plan.digests.items())
    if record.digest != plan.digest or not unchanged:
        difference = _first_difference(plan, folder)
        raise CheckpointError(f"{out} holds another comparison ({difference}); {remedy}")
    for run in plan.runs:
        if run.budget:
            run.folder(out).check_budget(run.budget)
    return check_files(plan.resolved.values(), out)


def _first_difference(plan: Plan, folder: ComparisonFolder) -> str:
    for run in plan.runs:
        recorded, planned = folder.settings(run.name), recorded_settings(run.config)
        key = first_difference(recorded, planned) if recorded else None
        if key is not None:
            return f"first difference: {run.algorithm}'s {told_difference(key, recorded, planned)}"
    return "other settings"


def claim(plan: Plan, out: Path, command: str | None) -> None:
    """Record `out` as the folder of this comparison. A recorded comparison can be extended by more
    algorithms, seeds and steps.

    Errors: as `check_claim`.
    """
    changes = check_claim(plan, out)
    folder = ComparisonFolder(out)
    planned = [
        ComparisonEntry(run=run.name, algorithm=run.algorithm, seed=run.config.run.seed)
        for run in plan.runs
    ]
    digests, sources = plan.digests, recorded_files(plan.resolved.values())
    if folder.exists():
        earlier = folder.record()
        old = [entry for entry in earlier.runs if entry not in planned]
        planned = sorted([*old, *planned], key=lambda entry: entry.seed)
        digests, sources = earlier.digests | digests, earlier.sources | sources
        changes = tuple(dict.fromkeys((*earlier.changes, *changes)))
        command = command or earlier.command
    folder.write(
        ComparisonRecord(
            digest=plan.digest,
            digests=digests,
            version=colearn.__version__,
            command=command,
            algorithms=tuple(digests),
            runs=tuple(planned),
            sources=sources,
            changes=changes,
        )
    )
