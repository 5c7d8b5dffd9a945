"""`colearn study`: evaluates cross-play of a comparison's agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from colearn.errors import ConfigError


def study(
    folder: Annotated[Path, typer.Argument(help="A comparison's folder.")],
    together: Annotated[str, typer.Option(help="The algorithm whose agents were trained as one.")],
    alone: Annotated[
        list[str],
        typer.Option(help="AGENT=LABEL: the algorithm that trained this agent alone; repeatable."),
    ] = [],  # noqa: B006 - typer reads the default, nobody changes it
    metric: Annotated[str, typer.Option(help="Of the task.")] = "solved",
    turns: Annotated[str, typer.Option(help="The task's metric that counts turns.")] = "rounds",
) -> None:
    """Evaluate a trained team with swapped policies, and a team of agents that were trained alone;
    plot each role's reward."""
    from colearn.training.study import write_study

    pairs = [pair.partition("=") for pair in alone]
    for agent, _, label in pairs:
        if not label:
            raise ConfigError(f"--alone: '{agent}' is not AGENT=LABEL; write tool=tool_alone")
    members = {agent: label for agent, _, label in pairs}
    page = write_study(folder, together=together, alone=members, metric=metric, turns=turns)
    print(f"report: {page}")
