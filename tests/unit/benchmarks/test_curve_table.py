"""Points of a run's curves, by hand."""

import sys
from pathlib import Path

import pytest

from colearn.runs.record import Line, RunFolder

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from curve_table import at_points, main, over_parts, row

from colearn.runs.record import Run


def line(kind, steps, **metrics):
    return Line(
        kind=kind,
        **{"iteration": steps, "environment_steps": steps, "generated_tokens": 0},
        **{"updates": 0, "wall_seconds": 0.0, "metrics": metrics},
    )


def run(evaluated, updated):
    """A run whose evaluations and updates are `f1` and `return` by joint actions."""
    return Run(
        folder=RunFolder(Path("none")),
        algorithm="mhgpo",
        seed=0,
        record=None,
        evaluations=tuple(line("evaluation", at, f1=value) for at, value in evaluated),
        updates=tuple(line("update", at, **{"return": value}) for at, value in updated),
    )


ONE = run(
    [(0, 0.1), (40, 0.3), (60, 0.4), (100, 0.5)], [(20, 1.0), (40, 2.0), (60, 3.0), (80, 5.0)]
)


def test_an_evaluation_is_the_nearest_to_each_point_of_training():
    # points 0, 25, 50, 75, 100; of 40 and 60, which are as near to 50, the first
    assert at_points(ONE, "f1", 4) == [0.1, 0.3, 0.3, 0.4, 0.5]
    assert at_points(ONE, "return", 4) is None


def test_updates_are_averaged_over_each_part_of_training():
    assert over_parts(ONE, "return", 2) == [1.5, 4.0]
    assert over_parts(ONE, "f1", 2) is None


def test_a_row_is_the_mean_over_seeds_with_the_interval_of_the_end():
    other = run([(0, 0.3), (100, 0.7)], [])
    cells = row([ONE, other], "f1", 1)
    # 0.5 and 0.7: deviation 0.1414, Student's 12.706 at one degree, 12.706 * 0.1
    assert cells == "0.200 | 0.600 [-0.671, 1.871]"
    assert row([ONE], "return", 2) == " | 1.500 | 4.000"


@pytest.mark.parametrize("metric", ["f2", "returns"])
def test_a_metric_that_no_run_has_makes_no_row(metric):
    assert row([ONE], metric, 2) is None


def test_a_run_with_fewer_updates_than_parts_has_gaps_which_no_mean_counts():
    """One update in three parts: it is the first part's; of the other parts ONE has values."""
    short = run([], [(20, 4.0)])
    assert row([short], "return", 3) == " | 4.000 | - | -"
    assert row([ONE, short], "return", 3) == " | 2.750 | 3.000 | 5.000"


def test_a_folder_without_finished_runs_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), "--metrics", "f1"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path}: no finished run to report")
