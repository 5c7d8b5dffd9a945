"""Where reports write, and what stops them."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fabricated_runs as fabricated
import pytest

from colearn.cli import main
from colearn.record.files import published, write_text
from colearn.report import write_report
from colearn.report.episode_page import write_episode_page

OWN = "what I wrote"
NAMES = ("report.html", "summary.json", "table.md", "curves.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "runs"
    fabricated.write_run(out, "magrpo", 0)
    return out


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As on a full disk, files cannot grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_report_replaces_links_and_leaves_the_files_that_they_name(
    folder: Path, tmp_path: Path
) -> None:
    own, tables = tmp_path / "own.txt", tmp_path / "own tables"
    own.write_text(OWN)
    tables.mkdir()
    (folder / "tables").symlink_to(tables)
    for name in NAMES:
        (folder / name).symlink_to(own)
    (folder / ".report.html.partial").symlink_to(own)
    page = write_report(folder)
    assert own.read_text() == OWN and not list(tables.iterdir())
    assert not any((folder / name).is_symlink() for name in (*NAMES, "tables"))
    assert "<html" in page.read_text() and list((folder / "tables").glob("*.csv"))
    write_report(folder)  # over its own files


def test_a_page_of_episodes_replaces_links_too(folder: Path, tmp_path: Path) -> None:
    own, page = tmp_path / "own.txt", tmp_path / "page.html"
    own.write_text(OWN)
    page.symlink_to(own)
    page.with_name(".page.html.partial").symlink_to(own)
    write_episode_page(folder, page)
    assert own.read_text() == OWN and "<html" in page.read_text()


def test_a_report_that_cannot_be_written_is_one_line_and_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "report.html").write_text(OWN)
    before = written(folder)
    monkeypatch.setattr(sys, "argv", ["colearn", "report", str(folder)])
    with largest_file(1000), pytest.raises(SystemExit) as stop:
        main()
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1
    assert error.startswith(f"error: {folder}") and "File too large; make room" in error
    assert written(folder) == before and (folder / "report.html").read_text() == OWN


def test_a_folder_in_place_of_a_file_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.html").mkdir()
    monkeypatch.setattr(sys, "argv", ["colearn", "report", str(folder)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2


def test_what_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), published(tmp_path) as new:
        write_text(new / "a", "b")
        raise ZeroDivisionError
    assert written(tmp_path) == []
