"""The result of a run as a notebook shows it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import fabricated_runs
import pytest

import colearn
from colearn.entry.python.result import Result, read_result
from colearn.runs.report.write import live_page


@pytest.fixture
def result(tmp_path: Path) -> Result:
    fabricated_runs.write_run(tmp_path / "run", "magrpo", 0)
    return read_result(tmp_path / "run")


def page_of(html: str) -> str:
    """The page in the frame, as a browser reads the attribute."""
    (page,) = re.findall(r'<iframe sandbox srcdoc="([^"]*)"', html)
    return unescape(page)


@pytest.mark.usefixtures("no_figures")
def test_a_notebook_shows_the_report_of_a_run_in_a_frame_without_scripts(result: Result) -> None:
    html = result._repr_html_()
    assert str(result.folder) in html
    assert page_of(html) == live_page(result.folder, None)


@pytest.mark.usefixtures("no_figures")
def test_a_notebook_shows_the_report_of_a_comparison(tmp_path: Path) -> None:
    fabricated_runs.write_comparison(tmp_path / "compared", seeds=range(1))
    report = colearn.write_report(tmp_path / "compared")
    html = colearn.ComparisonResult(tmp_path / "compared")._repr_html_()
    assert page_of(html) == report.read_text()
    assert "<b>stone</b>" not in html
