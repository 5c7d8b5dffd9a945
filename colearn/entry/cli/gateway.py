"""`colearn gateway`: serves agents to a program that you start, without training the agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colearn.errors import ConfigError

from .options import Sets, checkpoint_team

if TYPE_CHECKING:
    from colearn.training.team import Team


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
    from colearn.deploy.play.trial import Trial

    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise ConfigError(f"--out {out}: name a new file in a folder that exists")
    team = _team(source, step, sets)
    evaluation, seed = team.run.config.evaluation, team.run.config.run.seed
    trial = Trial(team.run.task, team.players, evaluation, seed=seed, timeout=timeout, out=out)
    trial.play(episodes)


def _team(source: str, step: str, sets: list[str]) -> Team:
    """Loads the agents of a config or of a run's checkpoint."""
    from colearn.config import load_config
    from colearn.training.load_team import load_team

    if not Path(source).is_dir():
        config = load_config(source, sets)
        return load_team(config)
    team, checkpoint = checkpoint_team(source, step, sets)
    team.load(checkpoint.path)
    team.publish()
    return team
