"""Every collection finds the same tests, or parallel workers refuse to start."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_no_test_is_named_by_the_order_of_a_set(request: pytest.FixtureRequest) -> None:
    """Of the tests that this run collected; that order depends on the interpreter's hash seed."""
    assert [item.nodeid for item in request.session.items if _named_by_a_set(item)] == []


def _named_by_a_set(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)  # only tests with parameters have one
    values = [] if call is None else list(call.params.values())
    seen: set[int] = set()  # a parameter may hold itself
    while values:
        value = values.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, set | frozenset) and len(value) > 1 and repr(value) in item.nodeid:
            return True
        if isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            values += value
    return False


def test_no_module_name_of_tests_and_benchmarks_has_two_homes() -> None:
    """Both folders are on the path of some tests, and the order of the path would decide."""
    names = [
        file.stem
        for folder in ("tests/helpers", "tests/integration", "benchmarks")
        for file in (ROOT / folder).glob("*.py")
        if file.stem not in {"__init__", "conftest"}
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
