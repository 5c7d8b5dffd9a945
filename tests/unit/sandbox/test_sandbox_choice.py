"""Limits, the isolation mechanism and the filter of system calls."""

from __future__ import annotations

import math
import signal
import struct
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
from colearn.programs.sandbox._filter import filter_program
from colearn.programs.sandbox.place import find_place


@pytest.fixture
def nothing_works(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    failed = Output(text="", error="crash", message="exit status 1", seconds=0.0)
    monkeypatch.setattr(mechanism, "run_script", lambda *_: failed)
    mechanism.works.cache_clear()
    yield
    mechanism.works.cache_clear()


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fine = Output(text="True []\n", error=None, message="", seconds=0.0)
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
        ("call_seconds", -1.0),
        ("cpu_seconds", math.inf),
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


@pytest.mark.parametrize(("seconds", "cpu", "whole"), ((10.0, None, 10), (1.2, None, 2), (9, 2, 2)))
def test_processor_time_follows_the_wall_clock_unless_given(
    seconds: float, cpu: float | None, whole: int
) -> None:
    assert Limits(seconds=seconds, cpu_seconds=cpu).whole_cpu_seconds == whole


def test_no_shown_path_lies_in_another() -> None:
    paths = find_place().read_only
    assert not [(a, b) for a in paths for b in paths if a.startswith(b + "/")]


def _errno(code: bytes, number: int, first_argument: int = 0) -> int | None:
    """The filter's answer to a system call on x86_64: an error number, or None to allow."""
    steps = list(struct.iter_unpack("=HBBI", code))
    data = {0: number, 4: 0xC000003E, 16: first_argument}
    held, at = 0, 0
    while True:
        operation, if_true, if_false, value = steps[at]
        at += 1
        if operation == 0x20:
            held = data[value]
        elif operation == 0x06:
            return None if value == 0x7FFF0000 else value & 0xFFFF
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    ("call", "flags", "answer"),
    (
        ("read", 0, None),
        ("socket", 2, 1),
        ("ptrace", 0, 1),
        ("fork", 0, 1),
        ("clone3", 0, 38),
        ("clone as a thread", 0x003D0F00, None),
        ("clone as a process", 17, 1),
        ("clone with a user namespace", 0x10010000, 1),
        ("read by the x32 numbers", 0, 1),
    ),
)
def test_the_filter_answers(
    call: str, flags: int, answer: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    numbers = {"read": 0, "socket": 41, "ptrace": 101, "fork": 57, "clone3": 435, "clone": 56}
    number = 0x40000000 if "x32" in call else numbers[call.split()[0]]
    code = filter_program(processes=1)
    assert code is not None
    assert _errno(code, number, flags) == answer


def test_with_several_processes_the_filter_lets_them_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    code = filter_program(processes=2)
    assert code is not None
    assert [_errno(code, 56, 17), _errno(code, 57)] == [None, None]
