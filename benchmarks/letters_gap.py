"""Returns of the quickstart's teams on training letters and on held-out letters.

    colearn train quickstart --algorithm NAME --seed N --out RUNS/NAME-sN    # or colearn compare
    python benchmarks/letters_gap.py RUNS --out letters_gap.jsonl            # resumable, one core
    python benchmarks/letters_gap.py --report letters_gap.jsonl

Every letter is played with sampled actions, as in the run's evaluations, by the last checkpoint
and, once for each seed, by the warm start. The gap is the mean over training letters less
the mean over held-out letters.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import Any

from colearn.experiment.assemble import Assembly

START = "warm start"
REPEATS = {"train": 16, "test": 48}
"""Episodes of each letter, by split."""


def by_letter(parts: Assembly, split: str) -> dict[str, float]:
    """Mean return of each letter of a split, by the weights that are loaded."""
    from colearn.contract import Services
    from colearn.experiment.evaluation.evaluate import evaluate_team
    from colearn.experiment.processes import Processes
    from colearn.models.load import resolve_device

    config = parts.run.config
    settings = config.evaluation.model_copy(update={"split": split, "repeats": REPEATS[split]})
    with closing(Services.of(parts.run.task)):
        trees = evaluate_team(
            parts.run.task,
            parts.players,
            settings,
            seed=config.run.seed,
            credit=parts.run.parts.credit,
            cast=parts.run.cast,
            processes=Processes(resolve_device(config.run.device)),
        ).trees
    returns: dict[str, list[float]] = defaultdict(list)
    for tree in trees:
        returns[str(tree.item)].append(sum(node.reward or 0.0 for node in tree.nodes[1:]))
    return {letter: mean(values) for letter, values in returns.items()}


def measure(run: Path, done: Collection[tuple[str, int]]) -> list[dict[str, Any]]:
    from colearn.experiment.assemble import assemble
    from colearn.record import open_run

    folder = open_run(run)
    config = folder.config([])
    method, seed = run.name.rpartition("-s")[0], config.run.seed
    missing = [name for name in (START, method) if (name, seed) not in done]
    if not missing:
        return []
    parts = assemble(config)
    made = []
    for name in missing:
        if name != START:
            checkpoint = folder.checkpoints.choose("last")
            for key, learner in parts.host.learners.items():
                learner.load(checkpoint.path / str(key))
            parts.host.publish()
        letters = {split: by_letter(parts, split) for split in REPEATS}
        made.append({"method": name, "seed": seed, **letters})
    return made


def report(rows: Sequence[dict[str, Any]]) -> str:
    from stakes import interval

    methods = sorted({row["method"] for row in rows})
    lines = ["| | seeds | training letters | held-out letters | gap |", "|---|---|---|---|---|"]
    gaps: dict[str, dict[int, float]] = {}
    for method in methods:
        of = [row for row in rows if row["method"] == method]
        train, test = ([mean(row[split].values()) for row in of] for split in REPEATS)
        gaps[method] = {r["seed"]: a - b for r, a, b in zip(of, train, test, strict=True)}
        cells = (method, len(of), *map(interval, (train, test, list(gaps[method].values()))))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for method in methods:
        for other in methods[methods.index(method) + 1 :]:
            both = sorted(gaps[method].keys() & gaps[other].keys())
            less = interval([gaps[method][seed] - gaps[other][seed] for seed in both])
            lines.append(f"gap of {method} less that of {other}, by seed: {less}")
    for method in methods:
        of = [row["test"] for row in rows if row["method"] == method]
        letters = {letter: interval([one[letter] for one in of]) for letter in of[0]}
        lines.append(f"{method}, held-out letters: {letters}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="of runs named METHOD-sSEED")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    path = options.report or options.out
    read = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in read]
    for run in sorted(run for folder in options.folders for run in folder.glob("*-s*")):
        for made in measure(run, [(row["method"], row["seed"]) for row in rows]):
            rows.append(made)
            with path.open("a") as file:
                file.write(json.dumps(made) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
