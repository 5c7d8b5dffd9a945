"""How many seeds a difference between two algorithms needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import fabricated_runs as fabricated
import pytest

from colearn.runs.comparison.plan import Plan
from colearn.runs.comparison.seeds import (
    difference_for,
    pooled_deviation,
    seeds_for,
    seeds_line,
    tell_seeds,
)


@pytest.mark.parametrize(("difference", "seeds"), [(0.2, 394), (0.5, 64), (0.8, 26), (1.0, 17)])
def test_the_number_of_seeds_is_that_of_cohens_tables(difference: float, seeds: int) -> None:
    """Cohen (1988), table 2.4.1: a two-sided test at 5% with a power of 80%; 393 for d = 0.2."""
    assert seeds_for(difference) == pytest.approx(seeds, abs=int(difference == 0.2))


def test_the_difference_of_five_seeds_is_the_formula_by_hand() -> None:
    """(1.959964 + 0.841621) * sqrt(2 / (5 - 1.959964^2 / 4)) = 2.801585 * 0.7036294"""
    assert difference_for(5) == pytest.approx(1.971278, abs=1e-5)
    assert seeds_for(difference_for(7) + 1e-9) == 7


def test_the_deviation_is_pooled_within_algorithms() -> None:
    """Variances 1 with two degrees of freedom and 8 with one: sqrt((2 * 1 + 8) / 3)."""
    assert pooled_deviation([[1.0, 2.0, 3.0], [10.0, 14.0]]) == pytest.approx((10 / 3) ** 0.5)
    assert pooled_deviation([]) is None


def test_the_line_says_what_the_seeds_can_show() -> None:
    assert seeds_line(3).startswith("3 seeds: too few to tell algorithms apart")
    assert seeds_line(5) == (
        "5 seeds tell two algorithms apart, four times in five, that differ by 2 standard "
        "deviations between runs; half the difference needs 18 seeds"
    )
    assert "differ by 0.2 of sold, by the deviation of the runs" in seeds_line(5, 0.1, "sold")


def plan(algorithms: tuple[str, ...], seeds: int) -> Plan:
    runs: Any = tuple(
        SimpleNamespace(config=SimpleNamespace(run=SimpleNamespace(seed=seed)), metric="return")
        for seed in range(seeds)
    )
    resolved = dict.fromkeys(algorithms, cast(Any, None))
    return Plan(config=cast(Any, None), runs=runs, resolved=resolved)


def test_finished_runs_give_the_deviation_and_one_algorithm_needs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_seeds(plan(("magrpo",), 5), tmp_path)
    assert capsys.readouterr().err == ""
    tell_seeds(plan(("magrpo", "ac"), 5), tmp_path)
    assert "standard deviations" in capsys.readouterr().err
    fabricated.write_comparison(tmp_path, range(4), ("magrpo",))
    last = [fabricated.curve("magrpo", seed)[-1] for seed in range(4)]
    spread = (sum((value - sum(last) / 4) ** 2 for value in last) / 3) ** 0.5
    tell_seeds(plan(("magrpo", "ac"), 5), tmp_path)
    assert f"differ by {1.971278 * spread:.2g} of return" in capsys.readouterr().err
