"""Trained runs of `open_spiel` against search and equilibrium, from every seat.

    python benchmarks/games.py RUN [RUN ...] [--on GAME ...] [--games 1000] [--first]
        [--opponent mcts|equilibrium|legal] [--simulations 100] [--greedy] [--out FILE]
        [--seen FILE ...]

Without `--on` the games are those of the run's test split. An embedded model knows the words of its
config's games alone: a game of `--on` that it was not trained on has no row, and one line on stderr
names it. The opponent is search where all is open
and an equilibrium where cards are hidden, unless one is named; cooperative games are played by the
run's own players. Prints, for each run, game and seat: the mean payoff with its standard error, in
percent of the way from the worst observed to the optimum (MARSHAL, Fig. 3), the shares won, drawn
and lost, and how often the model's own reply ended the game (malformed, illegal, truncated).
Payoffs are observed in the runs of this call and of earlier ones (`--seen` their `--out` files); a
single run has no percentage. The optimum is the game's value against an equilibrium, else the most
that the game pays. With several runs the cross-game matrix follows: runs against games, in those
percents. Games per second are those of this process, opponents included. `--first` plays the model
before training, `--greedy` its likeliest words instead of samples.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from game_optimum import optimum
from matches import add_percentages, tally

from colearn.config import Named
from colearn.config.build import build_program, build_task
from colearn.contract.seeding import derive_seed
from colearn.errors import ColearnError
from colearn.models.embedded_recipes import is_embedded
from colearn.rollout.agents import Program
from colearn.rollout.agents.cast.seats import Against, Own
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.runs.record import RunFolder, open_run
from colearn.tasks.open_spiel.games import Game, cooperative, hidden, load
from colearn.training.load_team import load_team
from colearn.training.team import Team

RIVAL = "rival"
AT_ONCE = 500
"""Games that are played side by side."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--on", nargs="+")
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--opponent")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--first", action="store_true", help="the models before training")
    parser.add_argument("--greedy", action="store_true", help="the likeliest words, not samples")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seen", type=Path, nargs="+", default=[], help="earlier --out files")
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        names = names_of(given.runs)
        rows = [row for run in given.runs for row in of_run(run, names[run], given)]
    except ColearnError as error:
        raise SystemExit(f"games.py: {error}") from None
    if not rows:
        raise SystemExit(1)  # `worded` has printed why
    seconds = time.perf_counter() - started
    add_percentages(
        rows, [row for seen in given.seen for row in json.loads(seen.read_text())["rows"]]
    )
    for row in rows:
        print(
            f"{row['run']:16s} {row['game']:14s} {row['opponent']:12s} {row['seat']:9s} "
            f"{row['payoff']:+.3f} +- {row['error']:.3f} ({shown(row['normalised'])} %)  "
            f"won {row['won']:.3f} drawn {row['drawn']:.3f} lost {row['lost']:.3f}  {row['faults']}"
        )
    if len(given.runs) > 1:
        print(cross_table(rows))
    speed = given.games * len({(row["run"], row["game"]) for row in rows}) / seconds
    print(f"{speed:.1f} games per second")
    if given.out:
        given.out.write_text(json.dumps({"games_per_second": speed, "rows": rows}, indent=1))


def names_of(runs: Sequence[Path]) -> dict[Path, str]:
    """A run's folder name, or its path where another run's folder has the same name."""
    folders = [run.name for run in runs]
    return {run: run.name if folders.count(run.name) == 1 else str(run) for run in runs}


def of_run(run: Path, name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each game and seat."""
    folder = open_run(run)
    chosen = given.on if given.on is None else worded(folder, given.on)
    if chosen == []:
        return []
    parts = load_team(folder.config({} if chosen is None else {"task.test_games": chosen}))
    if not given.first:
        parts.load(folder.checkpoints.choose().path)
        parts.publish()
    return [
        {"run": name, **row}
        for item in parts.run.task.items("test")
        for row in of_game(parts, item, given)
    ]


def worded(folder: RunFolder, games: Sequence[str]) -> list[str]:
    """The games that the run's models have words for; a line on stderr names the others."""
    config = folder.config()
    paths = [model.path or "" for model in config.models.values()]
    if not any(map(is_embedded, paths)):
        return list(games)
    task = build_task(config)
    known = {item.name for split in ("train", "test") for item in task.items(split)}
    strange = [game for game in games if game not in known]
    if strange:
        print(
            f"games.py: --on: {folder.path} has no words for {', '.join(strange)}; its embedded "
            f"model knows {', '.join(sorted(known))}; give a run of a config with all these games",
            file=sys.stderr,
        )
    return [game for game in games if game in known]


def of_game(parts: Team, item: Game, given: argparse.Namespace) -> list[dict[str, Any]]:
    game = load(item.name)
    name = given.opponent or ("equilibrium" if hidden(game) else "mcts")
    settings = {"simulations": given.simulations} if name == "mcts" else {}
    rival = Program(build_program(Named(name=name, **settings), "--opponent"))
    trained = {agent: parts.players[agent] for agent in parts.run.task.agents}
    alone = cooperative(game)
    trees = []
    for first in range(0, given.games, AT_ONCE):
        played, _ = grow(
            parts.run.task,
            [item] * min(AT_ONCE, given.games - first),
            trained if alone else {**trained, RIVAL: rival},
            Chain(),
            seed=derive_seed(parts.run.config.run.seed, "games"),
            credit=parts.run.parts.credit,
            cast=Own() if alone else Against(),
            first_episode=first,
            greedy=given.greedy,
        )
        trees += played
    rows = []
    for seat in parts.run.task.agents:
        result = tally(trees, seat, seat)
        rows.append(
            {
                "game": item.name,
                "opponent": "itself" if alone else name,
                "seat": seat,
                "games": result.games,
                "payoff": result.payoff,
                "error": result.error,
                "optimum": optimum(item.name, name, seat=parts.run.task.agents.index(seat)),
                "won": result.won,
                "drawn": result.drawn,
                "lost": result.lost,
                "faults": dict(result.faults),
            }
        )
    return rows


def shown(percent: float | None) -> str:
    return "    -" if percent is None else f"{percent:5.1f}"


def cross_table(rows: Sequence[dict[str, Any]]) -> str:
    """Runs against games: percent from the worst observed to the optimum, the mean over seats."""
    games = list(dict.fromkeys(row["game"] for row in rows))
    lines = [f"| run | {' | '.join(games)} |", "|---" * (len(games) + 1) + "|"]
    for run in dict.fromkeys(row["run"] for row in rows):
        cells = []
        for game in games:
            normalised = [r["normalised"] for r in rows if (r["run"], r["game"]) == (run, game)]
            known = [percent for percent in normalised if percent is not None]
            cells.append(f"{np.mean(known):.1f}" if known else "")
        lines.append(f"| {run} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
