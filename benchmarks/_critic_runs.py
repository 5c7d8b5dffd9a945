"""Runs and fits that the benchmarks of given critics keep, each made once."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from colearn.config import Config
from colearn.experiment.critic_fit import FitSettings, fit_config, fit_critic
from colearn.experiment.loop import Experiment
from colearn.export import write_fit
from colearn.record import RunFolder, open_run


def finished(folder: Path, settings: Mapping[str, Any]) -> RunFolder:
    """The finished run in `folder`; it is made if it is missing, and made anew if it was cut
    off."""
    if RunFolder(folder).status != "finished":
        shutil.rmtree(folder, ignore_errors=True)
        Experiment(Config.model_validate(settings), folder).run()
    return open_run(folder)


def fitted(
    out: Path,
    runs: Sequence[Path],
    settings: FitSettings,
    overrides: Sequence[str],
    algorithm: str | None = None,
) -> Path:
    """A critic of the recorded runs in the folder `out`, as `colearn critic fit` makes it."""
    if not out.exists():
        config = fit_config(
            [open_run(run) for run in runs], algorithm=algorithm, overrides=overrides
        )

        def print_epoch(epoch: int, worth: Any) -> None:
            print(f"epoch {epoch}: R^2 {[one.r2 for one in worth]}", flush=True)

        write_fit(fit_critic(runs, config, settings, print_epoch), out)
    return out


def explained(run: RunFolder, key: str = "critic/explained_variance") -> dict[str, Any]:
    """The metric in the first five updates that have it, and its mean over the later half."""
    told = (line.metrics.get(key) for line in run.lines())
    values = [value for value in told if value is not None]
    return {
        "first": [round(one, 3) for one in values[:5]],
        "late": round(statistics.mean(values[len(values) // 2 :]), 3) if values else None,
    }
