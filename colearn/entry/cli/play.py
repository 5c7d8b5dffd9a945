"""`colearn play`: runs a task's evaluation with agents that are served by separate servers."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colearn.errors import ConfigError

from .options import Sets, place

if TYPE_CHECKING:
    from colearn.contract import DecPOMDP
    from colearn.deploy.play import Played
    from colearn.deploy.play.episode import Tell


def play(
    task: Annotated[str, typer.Argument(help="A run's folder, a config or a task's name.")],
    agents: Annotated[
        list[str],
        typer.Option(
            "--agent",
            help="NAME=URL of an agent's server; one for each. NAME=person: in the --watch page.",
        ),
    ],
    tokens: Annotated[
        list[str],
        typer.Option(
            "--token-env",
            help="NAME=VARIABLE that holds an agent's token; COLEARN_TOKEN for everyone else.",
        ),
    ] = [],  # noqa: B006 - typer reads the default, nobody changes it
    models: Annotated[
        list[str],
        typer.Option("--model", help="NAME=MODEL where an agent's endpoint serves several."),
    ] = [],  # noqa: B006
    timeout: Annotated[float, typer.Option(help="Seconds for each attempt.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, help="Attempts after the first.")] = 2,
    at_once: Annotated[int, typer.Option(min=1, help="Episodes side by side.")] = 16,
    out: Annotated[
        Path | None,
        typer.Option("--out", callback=place, help="New file for the episodes, as JSON lines."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve a page that shows the episodes as they happen.")
    ] = False,
    watch_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The page's port; 0 takes a free one.")
    ] = 0,
    sets: Sets = [],  # noqa: B006
) -> None:
    """Play a task's evaluation with agents behind OpenAI-compatible servers.

    Exits with code 1 if an episode was lost. Accepts settings such as --set evaluation.greedy=true.
    """
    import asyncio
    from multiprocessing import get_context

    from colearn.config import build_algorithm, build_task
    from colearn.deploy.play import Person, load_source, make_team
    from colearn.deploy.play import play as run
    from colearn.training.step_workers import step_workers

    config = load_source(task, sets)
    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise ConfigError(f"--out {out}: name a new file in a folder that exists")
    if config.evaluation.exact:
        print(
            "evaluation.exact: a server gives texts, not probabilities, so this play is sampled; "
            "colearn evaluate RUN computes the exact values",
            file=sys.stderr,
        )
    built = build_task(config)
    team = make_team(
        config,
        built.agents,
        agents,
        tokens=tokens,
        models=models,
        timeout=timeout,
        retries=retries,
    )

    people = {name: agent for name, agent in team.items() if isinstance(agent, Person)}
    if people and not watch:
        raise ConfigError(f"--agent {next(iter(people))}=person: add --watch, where one answers")

    async def all_of_it() -> Played:
        async with contextlib.AsyncExitStack() as stack:
            listeners: list[Tell] = []
            if watch:
                from colearn.deploy.play.watch import watched

                page = await stack.enter_async_context(
                    watched(config.task.name, watch_port, people)
                )
                for seat, url in page.urls.items():
                    print(f"watch{seat and f' as {seat}'}: {url}", file=sys.stderr)
                listeners.append(page.tell)
            # event loop and threads are running, and a fork would copy their locks
            with (
                step_workers(config.run.step_workers, built, get_context("spawn")) as pool,
                _progress() as progress,
            ):
                played = await run(
                    built,
                    team,
                    config.evaluation,
                    seed=config.run.seed,
                    at_once=1 if people else at_once,
                    pool=pool,
                    credit=build_algorithm(config).parts().credit,
                    tell=_each([progress, *listeners]),
                )
            _report(played, {name: agent.endpoint.shown for name, agent in team.items()})
            if out is not None:
                _write(out, built, played)
            if watch and sys.stderr.isatty():
                print("the page stays until Ctrl-C", file=sys.stderr)
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
        return played

    if asyncio.run(all_of_it()).lost:
        raise typer.Exit(1)


def _each(listeners: list[Tell]) -> Tell:
    def tell(event: dict[str, Any]) -> None:
        for listener in listeners:
            listener(event)

    return tell


def _report(played: Played, agents: dict[str, str]) -> None:
    counts = {
        "episodes": len(played.episodes),
        "lost": len(played.lost),
        "retries": played.retries.total(),
        "recovered": played.recovered.total(),
    }
    print(json.dumps({"agents": agents, **counts, **played.metrics}, indent=1), flush=True)
    for line in played.summary():
        print(line, file=sys.stderr)


def _write(path: Path, task: DecPOMDP[Any, Any], played: Played) -> None:
    """Write the episodes in the format of a run's episodes.jsonl; the entry of a lost episode
    contains the reason."""
    from dataclasses import asdict

    from colearn.runs.record.transcript import transcript

    with path.open("x", encoding="utf-8") as file:
        for episode in played.episodes:
            lost = None if episode.lost is None else asdict(episode.lost)
            line = {"iteration": 0, **transcript(task, episode.tree), "lost": lost}
            file.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def _progress() -> Iterator[Tell]:
    """Shows a progress bar on stderr if stderr is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from colearn.text.terminal import Terminal

    console = Terminal(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    notes = (TextColumn("{task.fields[lost]} lost, {task.fields[retries]} retries"),)
    with Progress(
        *columns, *notes, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        bar = bars.add_task("episodes", total=None, lost=0, retries=0)
        counts = {"lost": 0, "retried": 0}

        def tell(event: dict[str, Any]) -> None:
            kind = event["kind"]
            if kind == "planned":
                bars.update(bar, total=len(event["items"]))
            if kind in counts:
                counts[kind] += 1
                bars.update(bar, lost=counts["lost"], retries=counts["retried"])
            if kind in ("ended", "lost"):
                bars.advance(bar)

        yield tell
