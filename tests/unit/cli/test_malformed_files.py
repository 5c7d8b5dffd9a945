"""Every kind of file, damaged in its bytes and in its values: one line and exit 2, or what is left
is right after all.

The dry runs of one test share their rehearsals, which depend on sizes alone; all else is done anew.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from file_readers import Reader, readers
from malformed_files import Damage
from tiny import register, save_model

from colearn.entry.cli import main
from colearn.estimate import estimate
from colearn.estimate.phases import Passes

LONGEST = 1000
READERS = {reader.name: reader for reader in readers()}
Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def colearn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    register(monkeypatch, notes="tiny:Notes")
    monkeypatch.setattr("colearn.estimate.estimate", partial(estimate, rehearsed=Passes()))

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["colearn", *arguments])
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


def complaint(colearn: Command, arguments: list[str], damage: Damage) -> str | None:
    """What is wrong with how a damaged file was answered."""
    try:
        with limited():
            code, err = colearn(*arguments)
    except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    if code == 0 and not damage.surely:
        return None
    said = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: "))]
    if code != 2:
        return f"exit {code}: {err[-300:]!r}"
    if len(said) != 1 or not said[0].startswith("error: "):
        return f"not one line: {err[:300]!r}"
    return f"{len(said[0])} characters: {said[0][:300]!r}" if len(said[0]) > LONGEST else None


@contextmanager
def limited() -> Iterator[None]:
    """An error after ten minutes of processor time or of waiting: what is damaged never ends."""

    def stop(*_: object) -> None:
        raise TimeoutError("ten minutes of processor time, or of waiting")

    clocks = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, stop) for number in clocks}
    signal.setitimer(signal.ITIMER_PROF, 600)
    signal.setitimer(signal.ITIMER_REAL, 600)
    try:
        yield
    finally:
        for number, clock in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


def complaints(
    colearn: Command, cases: Iterable[tuple[Reader, Damage]], model: str, folder: Path
) -> list[str]:
    problems = []
    for number, (reader, damage) in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        problem = complaint(colearn, reader.write(place, model, damage.content), damage)
        if problem is not None:
            problems.append(f"{reader.name}: {damage.how}: {problem}")
    return problems


def every_damage() -> Iterator[tuple[Reader, Damage]]:
    return ((reader, damage) for reader in READERS.values() for damage in reader.damages())


def test_a_share_of_the_damaged_files_are_one_line_each(
    colearn: Command, model: str, tmp_path: Path
) -> None:
    cases = list(every_damage())
    assert len(cases) > 5000
    assert complaints(colearn, cases[::397], model, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_the_whole_file_is_read(colearn: Command, model: str, tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    whole = Damage("whole", reader.whole, surely=False)
    assert complaints(colearn, [(reader, whole)], model, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_every_damaged_file_is_one_line(
    colearn: Command, model: str, tmp_path: Path, name: str
) -> None:
    cases = [(reader, damage) for reader, damage in every_damage() if reader.name == name]
    assert complaints(colearn, cases, model, tmp_path) == []
