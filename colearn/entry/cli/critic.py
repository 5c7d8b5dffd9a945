"""`colearn critic`: trains critics outside a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colearn.errors import ConfigError

from .options import Out, Sets

if TYPE_CHECKING:
    from colearn.methods.values.ceiling import Ceiling
    from colearn.methods.values.explained_variance import TurnWorth

app = typer.Typer(name="critic", help="Critics that are trained apart from a run.")


@app.callback()
def critic() -> None:
    """Train a critic on runs that were recorded with `train.record: true`."""


@app.command()
def fit(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs on one task.")],
    out: Out,
    algorithm: Annotated[
        str | None,
        typer.Option(help="Whose critic is trained; default: the first run's algorithm."),
    ] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    epochs: Annotated[int, typer.Option(help="Passes over the episodes.")] = 4,
    minibatch: Annotated[int, typer.Option(help="Joint actions per optimiser step.")] = 64,
    held_out: Annotated[float, typer.Option(help="Fraction of episodes held out.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the split and the order.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a critic that was written there before.")
    ] = False,
) -> None:
    """Train a critic, for use in `critic.from`, on the recorded episodes of runs of any
    algorithm."""
    from colearn.deploy.export import write_fit
    from colearn.runs.record import open_run
    from colearn.training.critic_fit import FitSettings, fit_config, fit_critic

    if out.exists() and not overwrite:
        raise ConfigError(f"--out {out}: exists; name another folder or give --overwrite")
    config = fit_config([open_run(run) for run in runs], algorithm=algorithm, overrides=sets)
    fitted = fit_critic(
        runs,
        config,
        FitSettings(epochs=epochs, minibatch=minibatch, held_out=held_out, seed=seed),
        lambda epoch, worth: print(f"epoch {epoch}: {_line(worth)}", flush=True),
    )
    trained, held_count = fitted.episodes
    print(
        f"{trained} episodes, {fitted.joint_actions} joint actions; held out: {held_count} episodes"
    )
    print(f"means by item and turn: {_line(fitted.item_mean)}")
    for ceiling in fitted.ceilings:
        print(_ceiling(ceiling))
    for name, folder in write_fit(fitted, out, overwrite=overwrite).items():
        print(f"{name}: {folder}")


def _line(worth: Sequence[TurnWorth]) -> str:
    return "explains " + ", ".join(
        f"turn {turn.turn}: {'-' if turn.r2 is None else f'{turn.r2:.2f}'}" for turn in worth
    )


def _ceiling(ceiling: Ceiling) -> str:
    return (
        f"turn {ceiling.turn}: {ceiling.explainable:.2f} [{ceiling.low:.2f}, {ceiling.high:.2f}] "
        f"can be explained ({ceiling.groups} histories with several joint actions)"
    )
