"""What of an episode a report shows."""

from __future__ import annotations

from colearn.runs.record import Episode
from colearn.runs.report.transcripts import PicturedEpisode


def test_the_parts_of_a_count_that_are_0_are_left_out() -> None:
    """A number that is no part of another is shown when it is 0, too."""
    metrics = {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0, "reopened_shorter": 0.0}
    episode = Episode.model_validate({"iteration": 0, "item": "", "metrics": metrics})
    shown = PicturedEpisode(record=episode, pictures=())
    assert shown.metrics == {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0}
