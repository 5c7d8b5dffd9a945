"""The static page of an episode before and after training."""

from __future__ import annotations

import re
from pathlib import Path

import fabricated_runs as fabricated
import pytest

from colearn.errors import CheckpointError
from colearn.runs.record import Episode
from colearn.runs.report.episode_page import write_episode_page
from colearn.runs.report.transcripts import PicturedEpisode


def test_the_page_shows_one_item_before_and_after_training(tmp_path: Path) -> None:
    folder = fabricated.write_comparison(tmp_path / "comparison", seeds=range(1))
    page = write_episode_page(folder, tmp_path / "pages" / "episode.html").read_text()
    before, after = re.findall(r"iteration (\d+), item (\w+)", page)[:2]
    assert before == ("0", "icml")
    assert after == ("60", "icml")


def test_the_page_needs_nothing_outside(tmp_path: Path) -> None:
    folder = fabricated.write_comparison(tmp_path / "comparison", seeds=range(1))
    page = write_episode_page(folder, tmp_path / "episode.html").read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)', page) == []


def test_the_parts_of_a_count_that_are_0_are_left_out() -> None:
    """A number that is no part of another is shown when it is 0, too."""
    metrics = {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0, "reopened_shorter": 0.0}
    episode = Episode.model_validate({"iteration": 0, "item": "", "metrics": metrics})
    shown = PicturedEpisode(record=episode, pictures=())
    assert shown.metrics == {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0}


def test_a_run_without_transcripts_has_no_page(tmp_path: Path) -> None:
    folder = fabricated.write_comparison(tmp_path / "comparison", seeds=range(1))
    for episodes in folder.rglob("episodes.jsonl"):
        episodes.write_text("")
    with pytest.raises(CheckpointError, match=r"set evaluation\.transcripts above 0"):
        write_episode_page(folder, tmp_path / "episode.html")
