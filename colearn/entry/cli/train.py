"""`colearn train`: executes one run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colearn.errors import ConfigError
from colearn.text.masking import SECRETS

from .options import Devices, Sets, place, read_devices

if TYPE_CHECKING:
    from colearn.config import Config
    from colearn.estimate.machine import Machine

PARENT = "COLEARN_PARENT"
"""Environment variable with the ID of a process; when this process ends, the run ends too."""


def train(
    config: Annotated[
        str | None,
        typer.Argument(
            help="A shipped config's name or the path of a .yaml; with --resume the run's own."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", callback=place, help="Folder for everything that is written."),
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
    devices: Devices = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Keep a page of the run, OUT/watch.html, which an open browser reads anew.",
        ),
    ] = False,
) -> None:
    """Train one algorithm on one task with one seed."""

    if seed is not None:
        sets = [*sets, f"run.seed={seed}"]
    settings = _settings(config, out, sets, resume)
    if algorithm is not None:
        settings = _of_algorithm(settings, algorithm, sets)
    machine = read_devices(devices, dry_run)
    if processes > 1 and not dry_run:
        raise ConfigError(
            "--processes: describes a launcher for --dry-run; start a run of several processes "
            "with torchrun"
        )
    if dry_run:
        _estimate(settings, out, processes, machine)
        return
    if out is None:
        raise ConfigError("--out: missing; name a folder for the run, or add --dry-run")
    _train(settings, out, resume, watch)


def _settings(config: str | None, out: Path | None, sets: Sequence[str], resume: bool) -> Config:
    from colearn.config import load_config
    from colearn.runs.record import open_run
    from colearn.runs.record.writer import resume_command

    if config is not None:
        if resume and out is None and Path(config).is_dir():
            raise ConfigError(
                f"--out: missing; continue the run with: {resume_command(Path(config))}"
            )
        loaded = load_config(config, sets)
        os.environ.pop(SECRETS, None)  # programs that the run starts inherit the environment
        return loaded
    if not resume:
        raise ConfigError("config: missing; name a shipped config (colearn configs) or a .yaml")
    if out is None:
        raise ConfigError("--out: missing; name the folder of the run to resume")
    return open_run(out).config(sets)


def _of_algorithm(settings: Config, algorithm: str, sets: Sequence[str]) -> Config:
    """Returns the config of an algorithm of the comparison. A setting of the command line replaces
    the algorithm's own.

    Errors: ConfigError if the command line also names the algorithm by `--set`.
    """
    from colearn.config import load_config
    from colearn.runs.comparison.plan import config_of

    keys = {pair: pair.partition("=")[0].strip() for pair in sets}
    if {"algorithm", "algorithm.name"} & set(keys.values()):
        raise ConfigError(f"--algorithm {algorithm}: --set names an algorithm too; leave one out")
    own = [pair for pair, key in keys.items() if key.partition(".")[0] != "compare"]
    return load_config(config_of(settings, algorithm).model_dump(mode="json"), own)


def _estimate(settings: Config, out: Path | None, processes: int, machine: Machine | None) -> None:
    """Print the estimate of a dry run; writes no files."""
    from colearn.estimate import estimate
    from colearn.estimate.table import estimate_tables, placement_text
    from colearn.runs.record.place import check_place
    from colearn.text.launcher import check_launcher
    from colearn.text.terminal import Terminal

    check_launcher()
    if out is not None:
        check_place(out)
    estimated = estimate(settings, processes=processes, machine=machine)
    console = Terminal()
    console.print(estimate_tables(estimated), highlight=False)
    if estimated.placement:
        console.print(placement_text(estimated), highlight=False, soft_wrap=True)


def _train(settings: Config, out: Path, resume: bool, watch: bool) -> None:
    from colearn.training.interruption import Interrupted, end_with
    from colearn.training.restarts import run_with_restarts

    from .run_display import RunDisplay

    if (parent := os.environ.get(PARENT)) is not None:
        if not re.fullmatch(r"[0-9]{1,9}", parent):
            raise ConfigError(f"{PARENT}: must be the ID of a process, got {parent!r}; unset it")
        end_with(int(parent))
    display = RunDisplay(settings, out, watch=watch)
    try:
        record = run_with_restarts(settings, out, resume=resume, started=display.started)
    except Interrupted as interrupted:
        display.interrupted()
        raise SystemExit(128 + interrupted.number) from None
    display.finished(record)
