"""The result of a run as a notebook shows it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import fabricated_runs
import pytest
from markupsafe import escape

import colearn
from colearn.entry.python.result import Result, read_result


@pytest.fixture
def result(tmp_path: Path) -> Result:
    fabricated_runs.write_run(tmp_path / "run", "magrpo", 0)
    return read_result(tmp_path / "run")


def test_it_shows_the_curve_every_metric_and_the_last_transcript(result: Result) -> None:
    html = result._repr_html_()
    assert "<svg" in html
    assert [name for name in result.metrics if f"<td>{name}</td>" not in html] == []
    assert "<details open><summary>an episode of the last evaluation:" in html


def test_a_comparison_shows_its_headline_curves_table_and_a_transcript(tmp_path: Path) -> None:
    fabricated_runs.write_comparison(tmp_path / "compared")
    colearn.write_report(tmp_path / "compared")
    result = colearn.ComparisonResult(tmp_path / "compared")
    html = result._repr_html_()
    assert escape(result.summary["headline"]) in html
    assert '<img alt="learning curves"' in html
    assert [name for name in result.summary["algorithms"] if f"<td>{name}</td>" not in html] == []
    assert "<details open>" in html and "<b>stone</b>" not in html


def test_texts_of_agents_are_escaped(result: Result) -> None:
    html = result._repr_html_()
    assert "<b>stone</b>" not in html
    assert "&lt;b&gt;stone&lt;/b&gt;" in html


def test_it_is_whole_without_transcripts(result: Result) -> None:
    (result.folder / "episodes.jsonl").unlink()
    html = result._repr_html_()
    assert "<details" not in html
    assert ET.fromstring(f"<div>{html[html.index('<table>') :]}</div>") is not None
