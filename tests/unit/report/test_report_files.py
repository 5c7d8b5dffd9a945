"""Where reports write, and what stops them."""

from __future__ import annotations

import importlib
import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest
from undrawn import undrawn

from colearn.contract.picture import Cell, Panel, Picture
from colearn.entry.cli import main
from colearn.errors import CheckpointError
from colearn.runs.record import RunFolder
from colearn.runs.record.files import published, write_text
from colearn.runs.report import write_report

OWN = "what I wrote"
NAMES = ("report.html", "summary.json", "table.md", *(f"curves.{e}" for e in ("png", "svg", "csv")))


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
    for name in ("tables", "figures"):
        (folder / name).symlink_to(tables)
    for name in NAMES:
        (folder / name).symlink_to(own)
    (folder / ".report.html.partial").symlink_to(own)
    page = write_report(folder)
    assert own.read_text() == OWN and not list(tables.iterdir())
    assert not any((folder / name).is_symlink() for name in (*NAMES, "tables", "figures"))
    assert "<html" in page.read_text() and list((folder / "tables").glob("*.csv"))
    assert list((folder / "figures").glob("*.pdf"))
    with undrawn():
        write_report(folder)  # over its own files


@pytest.mark.usefixtures("no_figures")
def test_a_report_that_cannot_be_written_is_one_line_and_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "report.html").write_text(OWN)
    before = written(folder)
    importlib.import_module("colearn.runs.comparison.suite")  # its bytecode would be cut short
    monkeypatch.setattr(sys, "argv", ["colearn", "report", str(folder)])
    with largest_file(1000), pytest.raises(SystemExit) as stop:
        main()
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1
    assert error.startswith(f"error: {folder}") and "File too large; make room" in error
    assert written(folder) == before and (folder / "report.html").read_text() == OWN


@pytest.mark.usefixtures("no_figures")
def test_a_folder_in_place_of_a_file_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.html").mkdir()
    monkeypatch.setattr(sys, "argv", ["colearn", "report", str(folder)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2


def changed_lines(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize(
    "size", [1e308, -1e308, 10**400, float("inf")], ids=["1", "-1", "digits", "inf"]
)
def test_a_metric_without_bounds_counts_as_not_finite(folder: Path, size: float) -> None:
    changed_lines(folder / "metrics.jsonl", lambda line: line["metrics"].update(huge=size, a=1e99))
    for line in RunFolder(folder).lines():
        assert (line.metrics["huge"], line.metrics["a"]) == (None, 1e99)


@pytest.mark.usefixtures("no_figures")
def test_metrics_of_any_size_do_not_end_the_report(folder: Path) -> None:
    def change(line: dict[str, Any]) -> None:
        sign = 1 if line["iteration"] % 2 else -1
        line["metrics"].update(huge=sign * 1e308, large=sign * 1e100, level=1e100)

    changed_lines(folder / "metrics.jsonl", change)
    write_report(folder)
    (run,) = json.loads((folder / "summary.json").read_text())["runs"]
    assert set(run["evaluations"]["metrics.level"]) == {1e100}
    assert set(run["evaluations"]["metrics.huge"]) == {None}


def test_a_count_without_bounds_is_one_line(folder: Path) -> None:
    changed_lines(folder / "metrics.jsonl", lambda line: line.update(environment_steps=10**400))
    with pytest.raises(CheckpointError, match=r"metrics.jsonl:1: environment_steps: .*less than"):
        write_report(folder)


@pytest.mark.usefixtures("no_figures")
def test_a_page_is_bounded_whatever_the_run_wrote(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item of 1 MB, and more metrics than a page draws."""
    long = "x" * 10**6

    def lengthen(line: dict[str, Any]) -> None:
        line.update(item=long)
        for turn in line["turns"]:
            turn.update(observations={"ada": long}, actions={"ada": long})
            turn.update(rendered=long, global_info=long, privileged_info=long)

    monkeypatch.setattr("colearn.runs.report.write.MOST_CURVES", 2)
    more = {f"metric {number}": 1.0 for number in range(5)}
    changed_lines(folder / "episodes.jsonl", lengthen)
    changed_lines(folder / "metrics.jsonl", lambda line: line["metrics"].update(more))
    page = write_report(folder).read_text()
    assert len(page) < 10**6 and "980,000 more in episodes.jsonl" in page
    assert "(2 of " in page and "all are in summary.json)" in page


def picture(cells: int, columns: int) -> dict[str, Any]:
    stones = {(0, row): Cell("stone") for row in range(cells)}
    return Picture(groups=((Panel("world", columns, 100, stones),),)).plain()


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        ({"reward": 1.0}, 200),
        ({"actions": {"ada": "x" * 970}}, 10),
        ({"actions": {f"agent {number}": "x" * 85 for number in range(10)}}, 9),
        ({"picture": picture(50, columns=1)}, 4),
        ({"picture": picture(0, columns=390)}, 1),
        ({"rendered": "x" * 970}, 10),
    ],
    ids=["turns", "texts", "agents", "cells", "grids", "states"],
)
def test_a_page_of_an_episode_without_end_says_what_it_left_out(
    folder: Path, turn: dict[str, Any], shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 200 turns, and at most so many characters of texts and pictures."""
    monkeypatch.setattr("colearn.runs.report.transcripts.LONGEST_EPISODE", 10_000)
    episodes = folder / "episodes.jsonl"
    episodes.write_text(episodes.read_text().partition("\n")[0] + "\n")
    changed_lines(episodes, lambda line: line.update(turns=[turn] * 1200))
    page = write_report(folder).read_text()
    told = f"the first {shown} of 1,200 turns are shown; all are in episodes.jsonl"
    assert told in page
    episode = page.partition("Before training")[2].partition(told)[0]
    assert episode.count("<h5>Turn") == shown and len(episode) < 120_000


@pytest.mark.usefixtures("no_figures")
def test_a_page_shows_a_bounded_number_of_an_episodes_metrics(folder: Path) -> None:
    many = {f"metric {number:,}": 1.0 for number in range(3000)}
    changed_lines(folder / "episodes.jsonl", lambda line: line.update(metrics=many))
    page = write_report(folder).read_text()
    assert "the first 100 of 3,000 metrics are shown; all are in episodes.jsonl" in page
    shown = page.partition("Before training")[2]
    assert "metric 99" in shown and "metric 2,999" not in shown


def test_what_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), published(tmp_path) as new:
        write_text(new / "a", "b")
        raise ZeroDivisionError
    assert written(tmp_path) == []
