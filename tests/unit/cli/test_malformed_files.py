"""Every kind of file, damaged in its bytes and in its values: one line and exit 2, or what is left
is right after all.

The dry runs leave out the passes over the models, which read no file; all else is done anew.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import *  # noqa: F403 - a fixture
from commands import Command, complaint
from estimated import *  # noqa: F403 - fixtures
from file_readers import Reader, readers
from malformed_files import Damage
from tiny import save_model

READERS = {reader.name: reader for reader in readers()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


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
        with limited():
            problem = complaint(colearn, *reader.write(place, model, damage.content))
        right_after_all = problem is not None and problem.startswith("exit 0") and not damage.surely
        if problem is not None and not right_after_all:
            problems.append(f"{reader.name}: {damage.how}: {problem}")
    return problems


def cases(reader: Reader) -> list[tuple[Reader, Damage]]:
    """The whole file, and its damage."""
    whole = Damage("whole", reader.whole, surely=False)
    return [(reader, damage) for damage in (whole, *reader.damages())]


@pytest.mark.usefixtures("no_passes")
def test_a_share_of_the_damaged_files_are_one_line_each(
    colearn: Command, model: str, tmp_path: Path
) -> None:
    every = [case for reader in READERS.values() for case in cases(reader)]
    assert len(every) > 3000
    assert complaints(colearn, every[::397], model, tmp_path) == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize("name", READERS)
def test_the_whole_file_and_every_third_damaged_one_are_read_or_one_line(
    colearn: Command, model: str, tmp_path: Path, name: str
) -> None:
    assert complaints(colearn, cases(READERS[name])[::3], model, tmp_path) == []
