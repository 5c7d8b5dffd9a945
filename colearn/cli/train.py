"""`colearn train`: one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigName, Sets

if TYPE_CHECKING:
    from colearn.config import Config
    from colearn.experiment.checkpoint import Progress


def train(
    config: ConfigName,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for everything that is written.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="An entry of compare.algorithms, or another algorithm.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Replace run.seed.")] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, estimate memory and tokens, stop.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, help="For --dry-run: processes that a launcher will start.")
    ] = 1,
) -> None:
    """Train one algorithm on one task with one seed."""
    from colearn.config import load_config
    from colearn.errors import ConfigError

    settings = load_config(config, [*sets, *([] if seed is None else [f"run.seed={seed}"])])
    if algorithm is not None:
        from colearn.comparison.plan import config_of

        settings = config_of(settings, algorithm)
    if dry_run:
        _estimate(settings, processes)
        return
    if out is None:
        raise ConfigError("--out: missing; name a folder for the run, or add --dry-run")
    _train(settings, out, resume)


def _estimate(settings: Config, processes: int) -> None:
    """Nothing is written: the tables are all there is."""
    from rich.console import Console

    from colearn.estimate import estimate
    from colearn.estimate.table import estimate_tables

    Console().print(estimate_tables(estimate(settings, processes=processes)), highlight=False)


def _train(settings: Config, out: Path, resume: bool) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from colearn.errors import ColearnError
    from colearn.experiment.loop import Experiment

    experiment = Experiment(settings, out, resume=resume)
    budget = experiment.config.train.environment_steps
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[latest]}"),
    )
    with Bars(*columns) as bars:
        name = f"{settings.algorithm.name} seed {settings.run.seed}"
        bar = bars.add_task(name, total=budget, latest="")

        def report(progress: Progress, metrics: dict[str, float]) -> None:
            bars.update(bar, completed=min(progress.environment_steps, budget))
            if "evaluation/return" in metrics:
                latest = f"evaluation return {metrics['evaluation/return']:.3f}"
                bars.update(bar, latest=latest)

        try:
            result = experiment.run(report)
        except ColearnError:
            experiment.record.discard()
            raise
    first, last = result["first"]["return"], result["last"]["return"]
    print(f"evaluation return {first:.3f} -> {last:.3f}; run in {out}")
