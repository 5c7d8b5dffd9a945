"""Plays a task's episodes with each agent behind a separate server."""

from .episode import Loss, PlayedEpisode
from .person import Person
from .result import Played
from .runner import play, play_item
from .source import load_source
from .team import make_team

__all__ = [
    "Loss",
    "Person",
    "Played",
    "PlayedEpisode",
    "load_source",
    "make_team",
    "play",
    "play_item",
]
