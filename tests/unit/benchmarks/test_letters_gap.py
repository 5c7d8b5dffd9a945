"""The table of gaps between training and held-out letters."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from letters_gap import report


def row(method: str, seed: int, train: float, test: float) -> dict[str, Any]:
    """Two letters each, whose means are `train` and `test`."""
    letters = {"A": train - 0.1, "B": train + 0.1}
    return {"method": method, "seed": seed, "train": letters, "test": {"E": test, "H": test}}


def test_a_gap_is_the_mean_over_training_letters_less_that_over_held_out_letters():
    table = report([row("cc", 0, -0.5, -1.0), row("cc", 1, -0.25, -0.75)])
    first = table.splitlines()[2]
    # Student's quantile for one degree of freedom is 12.706; the deviation of means is 0.125
    assert first == "| cc | 2 | -0.38 [-1.96, 1.21] | -0.88 [-2.46, 0.71] | 0.50 [0.50, 0.50] |"


def test_gaps_are_compared_over_the_seeds_that_both_methods_have():
    rows = [row("cc", seed, 0.0, -0.5) for seed in (0, 1)]
    rows += [row("magrpo", seed, 0.0, -0.25) for seed in (1, 0)] + [row("magrpo", 2, 9.0, 0.0)]
    assert "gap of cc less that of magrpo, by seed: 0.25 [0.25, 0.25]" in report(rows)
