"""Forks where a critic was surprised, forks at random, and plain chains: joint actions to 90%.

    python benchmarks/critic_forks.py --out forks                    # resumable, one core
    python benchmarks/critic_forks.py --out forks --report

The problem of `critic_length.py` (two agents, eight turns, paid at the end) with its rates. An
iteration has about 128 joint actions with each method: 16 chains of eight, or eight chains with at
most eight further joint actions each. Shares and the end of a run are those of `critic_length.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from _critic_runs import critic_columns, finished
from critic_length import EPISODES, TURNS, reached, settings_of

FORKED = {"name": "forked_chain", "k": 2, "budget": TURNS}
SHAPES: dict[str, dict[str, Any]] = {
    "chain": {"name": "chain"},
    "forks by surprise": {**FORKED, "where": "surprise"},
    "forks at random": {**FORKED, "where": "random"},
}


def run(out: Path, method: str, seed: int, rate: float, steps: int) -> dict[str, Any]:
    settings = settings_of("V, TD(0)", seed, rate, steps)
    settings["algorithm"]["rollout"] = SHAPES[method]
    settings["train"]["episodes"] = EPISODES if method == "chain" else EPISODES // 2
    folder = finished(out / "runs" / f"{method}-{seed}-{rate:g}", settings)
    updates = [one for one in folder.lines() if one.kind == "update"]
    return {
        "method": method,
        "seed": seed,
        "rate": rate,
        "steps": steps,
        "curve": [
            (one.environment_steps, round(one.metrics["return"] / TURNS, 3)) for one in updates
        ],
        **critic_columns(folder),
    }


def report(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| shape | seeds | joint actions to 90%, by seed | median | to 70%, median "
        "| joint actions of an update | explained, later half |",
        "|---" * 7 + "|",
    ]
    for method in SHAPES:
        some = [row for row in rows if row["method"] == method]
        if some:
            actions = [reached(row) for row in some]
            late = [row["explained_late"] for row in some if row["explained_late"] is not None]
            cells = [
                method,
                str(len(some)),
                " ".join(f"{n:,.0f}" for n in actions),
                f"{statistics.median(actions):,.0f}",
                f"{statistics.median(reached(row, 0.7) for row in some):,.0f}",
                f"{statistics.mean(row['curve'][-1][0] / len(row['curve']) for row in some):.0f}",
                f"{statistics.mean(late):.2f}" if late else "-",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rate", type=float, default=4e-3, help="of the actors")
    parser.add_argument("--steps", type=int, default=6400, help="joint actions of a run")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["method"], row["seed"], row["rate"]) for row in rows}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, method in () if options.report else [(s, m) for s in seeds for m in options.methods]:
        if (method, seed, options.rate) not in done:
            rows.append(run(options.out, method, seed, options.rate, options.steps))
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(method, seed, reached(rows[-1]), flush=True)
    print(report([row for row in rows if row["rate"] == options.rate]))


if __name__ == "__main__":
    main()
