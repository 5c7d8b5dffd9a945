"""The table of mutation scores, the draw behind it, and the processes that try a mutant."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import mutations
from mutations import ENDLESS, PACKAGES, ROOT, drawn, first_failing, judges, row


def test_a_row_counts_who_noticed_and_gives_a_draw_its_interval() -> None:
    """By Wilson for 3 of 4: z = 1.96, centre (0.75 + 3.8416 / 8) / 1.9604 = 0.6275, half width
    1.96 sqrt(0.75 * 0.25 / 4 + 3.8416 / 64) / 1.9604 = 0.3269."""
    verdicts = ["fast::one", "slow::two", ENDLESS, None]
    counted = row("loss", 100, verdicts, {"fast::one"})
    assert counted == "| loss | 100 | 4 | 3 | 1 | 1 | 75.0% [30.1, 95.4] |"


def test_all_mutants_together_need_no_interval() -> None:
    assert row("loss", 2, ["a::b", None], set()) == "| loss | 2 | 2 | 1 | 0 | 0 | 50.0% |"


def test_a_longer_draw_begins_with_a_shorter_one() -> None:
    mutants = [str(number) for number in range(50)]
    short, long = drawn(mutants, 5, "0 loss"), drawn(mutants, 20, "0 loss")
    assert long[:5] == short and len(set(long)) == 20
    assert drawn(mutants, 5, "1 loss") != short


def test_the_tests_that_judge_a_package_are_there() -> None:
    for package, (folder, *_) in PACKAGES.items():
        assert (ROOT / "colearn" / folder).exists()
        assert [path for path in judges(package) if not (ROOT / "tests" / path).exists()] == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "TREE", tmp_path / "tree")


def test_the_first_failing_test_of_a_mutant_is_told_and_none_of_the_plain_code(
    place: None,
) -> None:
    def fails(test: Any, following: Any) -> bool:
        return os.environ["MUTANT_UNDER_TEST"] == "broken" and test.nodeid != "one"

    tests: list[Any] = [SimpleNamespace(nodeid=name) for name in ("one", "two", "three")]
    assert first_failing(tests, "broken", 600.0, fails) == "two"
    assert first_failing(tests, "", 600.0, fails) is None
    assert "broken" not in os.environ.get("MUTANT_UNDER_TEST", "")


def test_a_test_that_does_not_end_is_stopped(place: None) -> None:
    def waits(test: Any, following: Any) -> bool:
        time.sleep(60)
        return False

    tests: list[Any] = [SimpleNamespace(nodeid="one")]
    assert first_failing(tests, "broken", 0.1, waits) == ENDLESS
