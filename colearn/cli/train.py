"""`colearn train`: one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigName, Out, Sets

if TYPE_CHECKING:
    from colearn.experiment.checkpoint import Progress


def train(
    config: ConfigName,
    out: Out,
    algorithm: Annotated[str | None, typer.Option(help="Replace algorithm.name.")] = None,
    seed: Annotated[int | None, typer.Option(help="Replace run.seed.")] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
) -> None:
    """Train one algorithm on one task with one seed."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from colearn.config import load_config

    overrides = list(sets)
    if algorithm is not None:
        overrides.append(f"algorithm.name={algorithm}")
    if seed is not None:
        overrides.append(f"run.seed={seed}")
    settings = load_config(config, overrides)

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
