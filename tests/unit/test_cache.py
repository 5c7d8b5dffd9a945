"""What is built on this machine is built once and kept in the cache."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from colearn.programs.files import cache
from colearn.programs.files.cache import cache_place, made_once


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))


def test_it_is_made_once_and_its_suffix_is_kept() -> None:
    made: list[str] = []

    def make(aside: Path) -> None:
        made.append(aside.suffix)
        aside.write_text("numbers")

    places = [made_once("table.npy", "a table", make) for _ in range(2)]
    assert places == [cache_place("table.npy")] * 2
    assert places[0].read_text() == "numbers" and made == [".npy"]


def test_what_an_interrupted_process_left_is_made_anew() -> None:
    def fails(aside: Path) -> None:
        aside.mkdir()
        (aside / "old").touch()
        raise ValueError("killed")

    def makes(aside: Path) -> None:
        aside.mkdir()
        (aside / "new").touch()

    with pytest.raises(ValueError, match="killed"):
        made_once("folder", "a folder", fails)
    assert not cache_place("folder").exists()
    place = made_once("folder", "a folder", makes)
    assert [file.name for file in place.iterdir()] == ["new"]


def test_a_process_that_waits_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process ends only after that."""
    held, told = threading.Event(), threading.Event()
    said: list[str] = []

    def note(text: str) -> None:
        said.append(text)
        told.set()

    monkeypatch.setattr(cache, "note", note)

    def made_elsewhere() -> None:
        with FileLock(f"{cache_place('kept')}.lock"):
            held.set()
            assert told.wait(600)
            cache_place("kept").touch()

    other = threading.Thread(target=made_elsewhere)
    other.start()
    held.wait()
    assert made_once("kept", "the model", lambda _: pytest.fail("made twice")).exists()
    other.join()
    assert said == ["waits for the model, which another process makes"]
