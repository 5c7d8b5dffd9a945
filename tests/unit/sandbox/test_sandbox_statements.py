"""Splitting test code into tests."""

from __future__ import annotations

import pytest

from colearn.errors import ConfigError
from colearn.programs.sandbox.statements import take_apart


def test_each_statement_of_check_with_an_assert_is_one_test() -> None:
    text = """
METADATA = {}

def check(f):
    import math
    assert f(1) == 2
    for x in range(3):
        assert f(x) == x + 1
        assert f(x) > x
    y = f(5)
    assert y == 6
"""
    assert take_apart(text, "grow").sources == (
        (None, "METADATA = {}"),
        (None, "import math"),
        (0, "assert f(1) == 2"),
        (1, "for x in range(3):\n    assert f(x) == x + 1\n    assert f(x) > x"),
        (None, "y = f(5)"),
        (2, "assert y == 6"),
    )


def test_the_entry_point_has_its_own_name_and_that_of_check() -> None:
    assert take_apart("def check(f):\n    assert f(1)", "grow").names == ("grow", "f")


def test_asserts_without_check_are_tests() -> None:
    text = "assert grow(1) == 2\nassert candidate(2) == 3"
    assert take_apart(text, "grow").tests == 2


def test_a_call_of_check_is_left_out() -> None:
    text = "def check(f):\n    assert f(1)\ncheck(grow)"
    assert take_apart(text, "grow").sources == ((0, "assert f(1)"),)


def test_an_assert_that_cannot_fail_is_no_test() -> None:
    text = "def check(f):\n    assert True, 'a note'\n    assert f(1)"
    assert take_apart(text, "grow").tests == 1


def test_an_expected_exception_is_a_test() -> None:
    text = "try:\n    grow(None)\n    assert False\nexcept TypeError:\n    pass"
    assert take_apart(text, "grow").tests == 1


def test_a_helper_with_an_assert_is_no_test() -> None:
    text = "def near(x):\n    assert x\nassert near(grow(1))"
    assert take_apart(text, "grow").tests == 1


def test_each_text_of_a_sequence_is_one_test() -> None:
    tests = ("x = grow(1)\nassert x == 2", "assert grow(2) == 3")
    assert take_apart(tests, "grow").sources == ((0, tests[0]), (1, tests[1]))


@pytest.mark.parametrize(
    ("tests", "named"),
    (
        ("", "no assert"),
        ("assert True", "no assert"),
        ((), "no assert"),
        ("assert grow(", "tests: not valid Python"),
        (("assert grow(1)", "assert ("), r"tests\[1\]: not valid Python"),
        ("def check():\n    assert grow(1)", "check must take one argument"),
    ),
)
def test_tests_that_test_nothing_are_refused(tests: str | tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        take_apart(tests, "grow")
