"""Runs and fits that the benchmarks of given critics keep, each made once."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from colearn.config import Config
from colearn.deploy.export import write_fit
from colearn.runs.record import RunFolder, open_run
from colearn.training.critic_fit import FitSettings, fit_config, fit_critic
from colearn.training.loop import Experiment


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


def critic_columns(run: RunFolder) -> dict[str, Any]:
    """What a run's critic explains, and the joint actions that the critic was trained on."""
    return {
        **explained(run, "explained", "critic/explained_variance"),
        "critic_joint_actions": run.record().critic_joint_actions,
    }


def explained(run: RunFolder, name: str, metric: str) -> dict[str, Any]:
    """`NAME_first`: the metric in the first five updates that have it; `NAME_late`: its mean over
    the later half."""
    values = [value for line in run.lines() if (value := line.metrics.get(metric)) is not None]
    return {
        f"{name}_first": [round(one, 3) for one in values[:5]],
        f"{name}_late": round(statistics.mean(values[len(values) // 2 :]), 3) if values else None,
    }
