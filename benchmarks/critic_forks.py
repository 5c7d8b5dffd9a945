"""Forks where a critic was surprised, forks at random, and plain chains: joint actions to 90%.

    python benchmarks/critic_forks.py --out forks                    # resumable, one core
    python benchmarks/critic_forks.py --out forks --report

The problem of `critic_length.py` (two agents, eight turns, paid at the end) with its rates. An
iteration has about 128 joint actions with each method: 16 chains of eight, or eight chains with at
most eight further joint actions each. Shares and the end of a run are those of `critic_length.py`.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from _critic_runs import critic_columns, finished
from critic_length import EPISODES, TURNS, reached, run_and_report, settings_of

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


if __name__ == "__main__":
    run_and_report(str(__doc__), SHAPES, run, report, seeds=10)
