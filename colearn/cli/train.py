"""`colearn train`: one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Sets, tell_own_code

if TYPE_CHECKING:
    from colearn.config import Config
    from colearn.record import Progress

PARENT = "COLEARN_PARENT"
"""The process that a run ends with: a comparison's."""


def train(
    config: Annotated[
        str | None,
        typer.Argument(
            help="A shipped config's name or the path of a .yaml; with --resume the run's own."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for everything that is written.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="An entry of compare.algorithms, or another algorithm.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Replace run.seed.")] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the run in --out; --set train.environment_steps extends it."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, estimate memory and tokens, stop.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, help="For --dry-run: processes that a launcher will start.")
    ] = 1,
) -> None:
    """Train one algorithm on one task with one seed."""
    from colearn.errors import ConfigError

    settings = _settings(
        config, out, [*sets, *([] if seed is None else [f"run.seed={seed}"])], resume
    )
    tell_own_code(settings)
    if algorithm is not None:
        from colearn.comparison.plan import config_of

        settings = config_of(settings, algorithm)
    if dry_run:
        _estimate(settings, out, processes)
        return
    if out is None:
        raise ConfigError("--out: missing; name a folder for the run, or add --dry-run")
    _train(settings, out, resume)


def _settings(config: str | None, out: Path | None, sets: Sequence[str], resume: bool) -> Config:
    from colearn.config import load_config
    from colearn.errors import ConfigError
    from colearn.record import open_run

    if config is not None:
        return load_config(config, sets)
    if not resume:
        raise ConfigError("config: missing; name a shipped config (colearn configs) or a .yaml")
    if out is None:
        raise ConfigError("--out: missing; name the folder of the run to resume")
    return open_run(out).config(sets)


def _estimate(settings: Config, out: Path | None, processes: int) -> None:
    """Nothing is written: the tables are all there is."""
    from rich.console import Console

    from colearn.estimate import estimate
    from colearn.estimate.table import estimate_tables
    from colearn.record.place import check_place

    if out is not None:
        check_place(out)
    Console().print(estimate_tables(estimate(settings, processes=processes)), highlight=False)


def _train(settings: Config, out: Path, resume: bool) -> None:
    from rich.console import Console

    from colearn.comparison.progress import watch
    from colearn.errors import ColearnError
    from colearn.experiment.interruption import Interrupted, end_with
    from colearn.experiment.loop import Experiment
    from colearn.record.writer import resume_command

    if (parent := os.environ.get(PARENT)) is not None:
        end_with(int(parent))
    experiment = Experiment(settings, out, resume=resume)
    name = f"{settings.algorithm.name} seed {settings.run.seed}"
    at = experiment.progress.iteration
    with watch(Console(), {name: experiment.config.train.environment_steps}) as watcher:
        watcher.started(name, f"resumed at iteration {at}" if at else "started")

        latest: float | None = None

        def report(progress: Progress, metrics: dict[str, float]) -> None:
            nonlocal latest
            latest = metrics.get("evaluation/return", latest)
            watcher.advanced(name, progress.environment_steps, latest)

        try:
            record = experiment.run(report)
        except ColearnError:
            experiment.record.discard()
            raise
        except Interrupted as told:
            watcher.ended(name, "interrupted")
            kept = f"interrupted; the state of iteration {experiment.progress.iteration} is kept"
            print(f"{kept}; continue with: {resume_command(out)}", file=sys.stderr)
            raise SystemExit(128 + told.number) from None
        watcher.ended(name, "finished")
    judged = record.headline
    first, last = record.first[judged.metric], record.last[judged.metric]
    print(f"evaluation {judged.label} {_shown(first)} -> {_shown(last)}; run in {out}")


def _shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
