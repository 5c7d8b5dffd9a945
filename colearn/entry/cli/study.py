"""`colearn study`: evaluates cross-play of a comparison's agents, and evaluates a run's critics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from colearn.errors import ConfigError

_TEAMS = "teams"


class _Studies(TyperGroup):
    """Command group in which `colearn study FOLDER ...` means `colearn study teams FOLDER ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [_TEAMS, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(name="study", cls=_Studies, help="Studies of finished runs.")


@app.command()
def teams(
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


@app.command()
def critic(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    kept_critic: Annotated[
        Path | None, typer.Option("--critic", help="Judge this kept critic instead of the run's.")
    ] = None,
    step: Annotated[
        str, typer.Option(help="Checkpoint: last, best (by evaluation return) or an iteration.")
    ] = "last",
    repeats: Annotated[int, typer.Option(help="Trees of each held-out item.")] = 4,
    branches: Annotated[int, typer.Option(help="Joint actions after a joint history.")] = 3,
) -> None:
    """Evaluate a run's critics on new episodes: report the explained variance by turn, and an
    estimate of the maximum explained variance."""
    from colearn.runs.report.show import show_number
    from colearn.training.study.critic import study_critic

    from .options import read_step

    for study in study_critic(
        run, critic=kept_critic, step=read_step(step), repeats=repeats, branches=branches
    ):
        print(f"{study.name}, on {study.joint_actions} fresh joint actions")
        for turn in study.turns:
            estimates = (turn.explained, turn.r2, turn.item_mean)
            explained, r2, item = (
                show_number(None if estimate is None else estimate.mean) for estimate in estimates
            )
            bounds = "-"
            if turn.ceiling is not None:
                bounds = "{} [{}, {}]".format(*map(show_number, turn.ceiling))
            print(
                f"  turn {turn.turn}: explains {explained} (R^2 {r2}); means by item {item}; "
                f"can be explained: {bounds}"
            )
        print(study.sentence)
