"""A trained run of `open_spiel` against search and equilibrium, from both seats.

    python benchmarks/games.py RUN [--games 1000] [--opponent mcts|equilibrium|legal] [--out FILE]
        [--simulations 100]

Prints, for each game of the run's task and each seat: the mean payoff with its standard error, in
percent of the way from the game's worst to its best, the shares won, drawn and lost, and how often
the model's own reply ended the game (malformed, illegal, overlong). Cooperative games are played by
the run's own players. Games per second are those of this process, opponents included.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from colearn.config import load_config
from colearn.experiment.assemble import assemble
from colearn.experiment.keeper import list_checkpoints, load_checkpoint
from colearn.experiment.matches import tally
from colearn.rollout.chain import Chain
from colearn.rollout.grow import grow
from colearn.seeding import derive_seed
from colearn.tasks.open_spiel.games import cooperative, load


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--opponent", default="mcts")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--first", action="store_true", help="the model before training")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = measure(given)
    for row in found["rows"]:
        print(
            f"{row['game']:14s} {row['seat']:9s} {row['payoff']:+.3f} +- {row['error']:.3f} "
            f"({row['normalised']:5.1f} %)  won {row['won']:.3f} drawn {row['drawn']:.3f} "
            f"lost {row['lost']:.3f}  {row['faults']}"
        )
    print(f"{found['games_per_second']:.1f} games per second")
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    program: dict[str, Any] = {"name": given.opponent}
    if given.opponent == "mcts":
        program["simulations"] = given.simulations
    config = load_config(given.run / "config.yaml", [])
    rival = type(config.agents["player_0"]).model_validate({"program": program})
    config = config.model_copy(
        update={
            "players": {"rival": rival},
            "cast": type(config.cast).model_validate({"name": "against"}),
        }
    )
    parts = assemble(config)
    if not given.first:
        load_checkpoint(list_checkpoints(given.run / "checkpoints")[-1], parts.learners)
        for generator in parts.generators:
            generator.sync()
    rows, started, played = [], time.perf_counter(), 0
    for item in parts.task.items("test"):
        game = load(item.name)
        alone = cooperative(game)
        trees, _ = grow(
            parts.task,
            [item] * given.games,
            {a: parts.players[a] for a in parts.task.agents} if alone else parts.players,
            Chain(),
            seed=derive_seed(config.run.seed, "games"),
            credit=parts.parts.credit,
            **({} if alone else {"cast": parts.cast}),
        )
        played += len(trees)
        for seat in parts.task.agents:
            mine = tally(trees, seat, seat)
            rows.append(
                {
                    "game": item.name,
                    "seat": seat,
                    "games": mine.games,
                    "payoff": mine.payoff,
                    "error": mine.error,
                    "normalised": mine.normalised(game.min_utility(), game.max_utility()),
                    "won": mine.won,
                    "drawn": mine.drawn,
                    "lost": mine.lost,
                    "faults": dict(mine.faults),
                }
            )
    return {
        "run": str(given.run),
        "opponent": program,
        "rows": rows,
        "games_per_second": played / (time.perf_counter() - started),
    }


if __name__ == "__main__":
    main()
