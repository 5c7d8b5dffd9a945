"""State that later tests rely on cannot be skipped by raising or by dying."""

from __future__ import annotations

from typing import Any

import pytest
from hostile_states import FORGERIES
from hostile_suite import run_forgery, run_twin

import colearn.programs.sandbox.run
from colearn.programs.sandbox import run_tests
from colearn.programs.sandbox.confine import Side
from colearn.programs.sandbox.mechanism import works
from colearn.programs.sandbox.process import Process

pytestmark = pytest.mark.skipif(not works(), reason="no sandbox works here")


@pytest.mark.parametrize("name", FORGERIES)
def test_skipped_state_earns_nothing(name: str) -> None:
    assert run_forgery(FORGERIES[name]) == []


def test_an_honest_program_passes_each_of_these_tests() -> None:
    twins = {(one.honest, str(one.tests)): one for one in FORGERIES.values()}
    wrong = [run_twin(one) for one in twins.values()]
    assert wrong == [[]] * len(twins)


def test_a_failed_preparation_is_the_message() -> None:
    tests = "assert f(0) == 1\nx = f(1)\nassert f(2) == 3\nassert f(3) == 4"
    program = "def f(n): return [1][n]"
    verdict = run_tests(program, "f", tests)
    assert verdict.passed == (True, False, False)
    assert (verdict.error, verdict.message) == (
        "exception",
        "test 1: IndexError: list index out of range",
    )


def test_a_preparation_that_kills_the_program_is_the_message() -> None:
    tests = "assert f(0) == 1\nx = f(1)\nassert f(2) == 3"
    program = "import os\ndef f(n): return os._exit(3) if n == 1 else n + 1"
    verdict = run_tests(program, "f", tests)
    assert verdict.passed == (True, False)
    assert verdict.message == "test 1: its process ended early, with exit status 3"


def test_bare_asserts_count_each_whatever_the_others_do() -> None:
    """One that is false, one that raises, one that costs the process, one that is right."""
    program = """
import os
def f(n):
    if n == 1: return 0
    if n == 2: raise ValueError
    if n == 3: os._exit(0)
    return n + 1
"""
    tests = "\n".join(f"assert f({n}) == {n + 1}" for n in range(5))
    verdict = run_tests(program, "f", tests)
    assert verdict.passed == (True, False, False, False, True)


def test_after_a_loss_a_fresh_process_goes_through_the_loops_again() -> None:
    program = "import os\ndef f(n): return os._exit(0) if n == 9 else n + 1"
    tests = """
seen = []
for n in range(3):
    seen.append(f(n))
    assert seen[-1] == n + 1
assert f(9) == 10
assert seen == [1, 2, 3]
assert f(4) == 5
"""
    verdict = run_tests(program, "f", tests)
    assert verdict.passed == (True, False, True, True)


def test_what_dies_in_a_loop_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = colearn.programs.sandbox.run.start, []

    def counted(side: Side, *settings: Any) -> Process:
        started.append(side)
        return start(side, *settings)

    monkeypatch.setattr(colearn.programs.sandbox.run, "start", counted)
    program = "import os\ndef f(n): os._exit(0)"
    tests = "for n in range(3):\n    assert f(n) == n + 1\nassert f(3) == 4"
    assert run_tests(program, "f", tests).passed == (False, False)
    assert started == ["checker", "program"]
