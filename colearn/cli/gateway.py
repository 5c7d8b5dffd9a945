"""`colearn gateway`: serves agents to a program that you start, without training the agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colearn.errors import ConfigError

from .options import Sets, checkpoint_assembly, tell_own_code

if TYPE_CHECKING:
    from colearn.experiment.assemble import Assembly


def gateway(
    source: Annotated[str, typer.Argument(help="A config (untrained agents) or a run's folder.")],
    step: Annotated[
        str, typer.Option(help="A run's checkpoint: last, best or an iteration.")
    ] = "last",
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes; else until interrupted.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for a request or the end.")
    ] = 3600.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="New file for the episodes, as JSON lines.")
    ] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Serve a gateway task's agents to a program that you start. Nothing is trained.

    Prints each episode's URLs as `export` lines, and the episode's reward once the program has
    ended the episode.
    """
    from colearn.play.trial import Trial

    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise ConfigError(f"--out {out}: name a new file in a folder that exists")
    parts = _assembled(source, step, sets)
    evaluation, seed = parts.run.config.evaluation, parts.run.config.run.seed
    trial = Trial(parts.run.task, parts.players, evaluation, seed=seed, timeout=timeout, out=out)
    trial.play(episodes)


def _assembled(source: str, step: str, sets: list[str]) -> Assembly:
    """Loads the agents of a config or of a run's checkpoint."""
    from colearn.config import load_config
    from colearn.experiment.assemble import assemble
    from colearn.experiment.checkpoint_manager import load_learners

    if not Path(source).is_dir():
        config = load_config(source, sets)
        tell_own_code(config)
        return assemble(config)
    parts, checkpoint = checkpoint_assembly(source, step, sets)
    load_learners(checkpoint.path, parts.host.learners)
    parts.host.publish()
    return parts
