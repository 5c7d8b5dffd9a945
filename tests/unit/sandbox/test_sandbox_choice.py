"""Limits and the isolation mechanism."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.programs.sandbox import (
    Limits,
    Mechanism,
    Output,
    check_mechanism,
    mechanism,
    run_tests,
)
from colearn.programs.sandbox.place import find_place


@pytest.fixture
def nothing_works(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    failed = Output(text="", error="crash", message="exit status 1")
    monkeypatch.setattr(mechanism, "run_script", lambda *_: failed)
    mechanism.works.cache_clear()
    yield
    mechanism.works.cache_clear()


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fine = Output(text="True []\n", error=None, message="")
    monkeypatch.setattr(mechanism, "run_script", lambda *_: fine)
    monkeypatch.setattr(mechanism.shutil, "which", lambda _: None)
    mechanism.works.cache_clear()
    yield
    mechanism.works.cache_clear()


@pytest.mark.usefixtures("nothing_works")
def test_where_nothing_works_one_line_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"install bubblewrap.*mechanism='unsafe'") as refused:
        run_tests("def f(): pass", "f", "assert f() is None")
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("nothing_works")
def test_unsafe_is_had_by_its_name_only_and_warns() -> None:
    with pytest.warns(UserWarning, match="programs see your files and network"):
        check_mechanism("unsafe")


@pytest.mark.usefixtures("no_bwrap")
def test_bubblewrap_is_not_replaced_where_it_is_missing() -> None:
    with pytest.raises(ConfigError, match="install bubblewrap"):
        check_mechanism("bwrap")


@pytest.mark.parametrize("name", ["bwrap", "unsafe"])
def test_a_process_that_ignores_the_ends_of_programs_is_refused(name: Mechanism) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(ConfigError, match=r"^sandbox: this process ignores SIGCHLD"):
            check_mechanism(name)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_misspelt_mechanism_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'bwrap'"):
        check_mechanism("bwarp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    (
        ("seconds", 0),
        ("seconds", math.nan),
        ("seconds", math.inf),
        ("memory_mb", 1.5),
        ("memory_mb", 16),
        ("processes", 0),
        ("processes", True),
        ("output_kb", None),
        ("file_mb", "8"),
    ),
)
def test_a_limit_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"limits.{name}"):
        Limits(**{name: value})


def test_each_process_must_have_room_for_python() -> None:
    with pytest.raises(ConfigError, match=r"limits.memory_mb.*each of 16"):
        Limits(processes=16)


def test_no_shown_path_lies_in_another() -> None:
    paths = find_place().read_only
    assert not [(a, b) for a in paths for b in paths if a.startswith(b + "/")]
