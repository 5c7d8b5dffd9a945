"""Matches between the members of a league: win matrix and Elo ratings.

    python benchmarks/league.py RUN[@STEP] [RUN[@STEP] ...] [--games 200] [--out FILE]

A member is a checkpoint of a run of `open_spiel`: that of an iteration, or with RUN alone every one
that the run keeps (`run.keep_checkpoints`). Each pair plays `--games` games of every game of the
first run's test split, half of them from either side. Prints the share of points that the row's
member won from the column's (a draw is half a point) and ratings by maximum likelihood.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matches import elo, win_matrix

from colearn.contract import Cast, Player
from colearn.contract.seeding import derive_seed
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.runs.record import open_run
from colearn.training.load_team import load_team
from colearn.training.team import Team


class Pair(Cast):
    """Two members, who change sides from game to game."""

    def __init__(self, one: str, other: str) -> None:
        self.members = one, other

    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        return {
            agent: f"{self.members[(place + episode) % 2]}/{agent}"
            for place, agent in enumerate(agents)
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("members", nargs="+")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    parts = {name: part for text in given.members for name, part in members(text)}
    results = {
        (one, other): scores(parts, one, other, given.games)
        for one, other in itertools.combinations(parts, 2)
    }
    names = list(parts)
    matrix, ratings = win_matrix(results, names), elo(results, names)
    print(f"| member | Elo | {' | '.join(names)} |")
    print("|---" * (len(names) + 2) + "|")
    for name, row in zip(names, matrix, strict=True):
        cells = " | ".join("" if np.isnan(cell) else f"{cell:.3f}" for cell in row)
        print(f"| {name} | {ratings[name]:+.0f} | {cells} |")
    if given.out:
        won = [[None if np.isnan(cell) else cell for cell in row] for row in matrix.tolist()]
        given.out.write_text(json.dumps({"members": names, "elo": ratings, "won": won}, indent=1))


def members(text: str) -> list[tuple[str, Team]]:
    """Every member that an argument names, each with networks of its own."""
    path, _, step = text.partition("@")
    folder = open_run(path)
    if step:
        chosen = [folder.checkpoints.choose(step if step in ("last", "best") else int(step))]  # type: ignore[arg-type]
    else:
        chosen = folder.checkpoints.all()
    teams = []
    for checkpoint in chosen:
        parts = load_team(folder.config())
        parts.load(checkpoint.path)
        parts.publish()
        teams.append((f"{folder.name}@{checkpoint.iteration}", parts))
    return teams


def scores(parts: Mapping[str, Team], one: str, other: str, games: int) -> list[float]:
    """The first one's points, a number for each game."""
    players: dict[str, Player] = {
        f"{name}/{agent}": parts[name].players[agent]
        for name in (one, other)
        for agent in parts[name].run.task.agents
    }
    task = parts[one].run.task
    items = list(task.items("test"))
    trees, _ = grow(
        task,
        [items[number % len(items)] for number in range(games)],
        players,
        Chain(),
        seed=derive_seed(0, "league", one, other),
        credit=parts[one].run.parts.credit,
        cast=Pair(one, other),
    )
    points = []
    for tree in trees:
        paid = {tree.player(a): tree.nodes[-1].metrics[f"payoff_{a}"] for a in tree.agents}
        payoff = np.mean([value for name, value in paid.items() if name.startswith(f"{one}/")])
        theirs = np.mean([value for name, value in paid.items() if name.startswith(f"{other}/")])
        points.append(0.5 * (1.0 + float(np.sign(payoff - theirs))))
    return points


if __name__ == "__main__":
    main()
