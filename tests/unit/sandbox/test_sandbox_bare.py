"""Bare asserts: detection of tests without side effects."""

from __future__ import annotations

import pytest

from colearn.programs.sandbox.statements import take_apart

HELPERS = """
import math, os.path
from collections import Counter
seen, table, wanted = [], {}, iter([1])
def near(a, b):
    return abs(a - b) < 1e-9
def far(a, b):
    return not near(a, b)
def record(value):
    seen.append(value)
    return True
def recorded(value):
    return record(value)
def extended(held, value):
    held += [value]
    return held
def stored(value):
    table[0] = value
    return value
def twice(value): return value
def twice(value): return seen.append(value)
class Case:
    total = 0
alias = seen.append
"""


@pytest.mark.parametrize(
    "test",
    (
        "assert f(1) == 2",
        "assert candidate(1) == 2, f'not {f(1)}'",
        "assert abs(f(1) - 2.0) < 1e-9 and not f(2)",
        "assert all(f(n) == n + 1 for n in range(3))",
        "assert sorted(f([3, 1]), key=lambda x: -x) == [3, 1]",
        "assert f('x').upper() == ''.join(['X'])",
        "assert math.isclose(f(1), 2)",
        "assert os.path.basename(f('x')) == 'x'",
        "assert Counter(f('aab')) == {'a': 2, 'b': 1}",
        "assert near(f(1), 2)",
        "assert far(f(1), 3)",
        "assert f(seen) == table.get(0, seen[0:1])",
        "assert shifted(f(1)) == 3",
    ),
)
def test_an_assert_that_changes_nothing_is_bare(test: str) -> None:
    prompt = "def shifted(x):\n    return x + 1\ndef f(x):\n    ...\n"
    assert take_apart(HELPERS + test, "f", prompt=prompt).bare == (True,)


@pytest.mark.parametrize(
    "test",
    (
        "for n in range(3):\n    assert f(n)",
        "try:\n    f(1)\n    assert False\nexcept TypeError:\n    pass",
        "assert (got := f(1)) == 2",
        "assert not seen.append(f(1))",
        "assert not table.update(x=f(1))",
        "assert alias(f(1)) is None",
        "assert record(f(1))",
        "assert recorded(f(1))",
        "assert extended(seen, f(1))",
        "assert stored(f(1))",
        "assert twice(f(1))",
        "assert list(map(record, [f(1)]))",
        "assert list(map(seen.append, [f(1)]))",
        "assert next(wanted) == f(1)",
        "assert setattr(Case, 'total', f(1)) is None",
        "assert Case().__init__(f(1)) is None",
        "assert exec('x = 1') or f(1)",
        "assert (lambda: seen)().append(f(1)) is None",
        "assert [seen][0].append(f(1)) is None",
        "assert f.held.append(f(1)) is None",
        "assert g(f(1)) == 3",
    ),
)
def test_an_assert_that_may_change_something_is_not_bare(test: str) -> None:
    assert take_apart(HELPERS + test, "f").bare == (False,)


def test_a_builtin_that_the_tests_bind_anew_is_theirs() -> None:
    assert take_apart("len = print\nassert len(f(1)) == 2", "f").bare == (False,)


def test_a_text_is_bare_if_it_is_one_bare_assert() -> None:
    tests = ("assert f(1) == 2", "x = f(1)\nassert x == 2", "assert f(1)\nassert f(2)")
    assert take_apart(tests, "f").bare == (True, False, False)
