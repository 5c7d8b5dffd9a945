"""Does the distance from the training letters make the gap? Each letter is held out once.

    python benchmarks/letter_folds.py --out folds                    # resumable, one core
    python benchmarks/letter_folds.py --out folds --report

The quickstart's 36 letters in six parts; each part is held out in turn, with the other 30 letters
as training letters and in the warm start, so that each letter has a return as a training letter
(five parts) and one as a held-out letter (one part), by the same method, seeds and budget. The gap
of a letter is their difference: what is hard about the letter itself is in both. Its distance is
the number of the nine cells in which it differs from the nearest training letter of its part.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from _critic_runs import finished
from letters_gap import measure

from colearn.comparison.plan import config_of
from colearn.config import load_config
from colearn.tasks.str_build.font import draw

CONFIG = Path(__file__).parents[1] / "configs" / "quickstart.yaml"
PARTS = 6


def parts() -> list[list[str]]:
    """The quickstart's held-out letters, and the others in five parts, drawn by seed 0."""
    task = load_config(CONFIG).model_dump()["task"]
    first, others = list(task["test_strings"]), list(task["strings"])
    drawn = [others[place] for place in np.random.default_rng(0).permutation(len(others))]
    return [first, *(drawn[number :: PARTS - 1] for number in range(PARTS - 1))]


def run(folder: Path, method: str, seed: int, held_out: Sequence[str]) -> None:
    """A finished run of a method; it is made if it is missing."""
    every = [letter for part in parts() for letter in part]
    config = config_of(load_config(CONFIG), method)
    changes = {
        "task.strings": [letter for letter in every if letter not in held_out],
        "task.test_strings": list(held_out),
        "run.seed": seed,
        "run.device": "cpu",
        "evaluation.every": 10**6,
    }
    finished(folder, load_config(config.model_dump(), changes).model_dump())


def distance(letter: str, others: Sequence[str]) -> int:
    """Number of cells in which a letter differs from the nearest of the others."""
    pictures = {one: np.array([list(row) for row in draw(one, "small", 1)]) for one in others}
    own = np.array([list(row) for row in draw(letter, "small", 1)])
    return min(int((own != pictures[one]).sum()) for one in others if one != letter)


def gaps(rows: Sequence[Mapping[str, Any]], method: str) -> dict[str, tuple[int, float]]:
    """Each letter's distance when it is held out, and its gap (means over seeds and parts)."""
    trained, held_out = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    far: dict[str, int] = {}
    for row in rows:
        if row["method"] == method:
            for letter, value in row["train"].items():
                trained[letter].append(value)
            for letter, value in row["test"].items():
                held_out[letter].append(value)
                far[letter] = distance(letter, list(row["train"]))
    return {
        letter: (far[letter], mean(trained[letter]) - mean(held_out[letter]))
        for letter in held_out
        if letter in trained
    }


def report(rows: Sequence[Mapping[str, Any]]) -> str:
    from stakes import interval

    lines = ["| | letters | gap, all | by distance from the training letters | slope a cell |"]
    lines.append("|---" * 5 + "|")
    for method in dict.fromkeys(row["method"] for row in rows):
        found = gaps(rows, method)
        far, gap = zip(*found.values(), strict=True)
        by_distance = [
            f"{cells}: {interval([value for one, value in found.values() if one == cells])} "
            f"({far.count(cells)})"
            for cells in sorted(set(far))
        ]
        slopes = [
            np.polyfit(*zip(*gaps(of_seed, method).values(), strict=True), 1)[0]
            for seed in sorted({row["seed"] for row in rows if row["method"] == method})
            if (of_seed := [row for row in rows if row["seed"] == seed])
        ]
        cells = (method, len(found), interval(list(gap)), "; ".join(by_distance), interval(slopes))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=["collm_cc"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "folds.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, method in () if options.report else product(seeds, options.methods):
        for place, held_out in enumerate(parts()):
            folder = options.out / f"part{place}" / f"{method}-s{seed}"
            run(folder, method, seed, held_out)
            done = [(row["method"], row["seed"]) for row in rows if row["part"] == place]
            for made in measure(folder, done):
                rows.append({"part": place, **made})
                with path.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
