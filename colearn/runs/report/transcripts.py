"""Selects transcripts: of the same item before and after training, not the best ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

from colearn.contract.picture import Picture
from colearn.errors import CheckpointError
from colearn.methods.critic.stream import StreamCritic
from colearn.runs.record import Episode, Run
from colearn.runs.record.fields import RecordedTurn
from colearn.runs.record.folder import EPISODES
from colearn.runs.record.limits import (
    LONGEST_EPISODE,
    LONGEST_TEXT,
    MOST_CURVES,
    MOST_TURNS,
)
from colearn.runs.report.draw_picture import Drawing

from .critic_text import critic_of, critic_texts
from .source import Source

_PER_LINE = 10
"""Characters that draw one line of a picture's grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturedEpisode:
    """An episode and its pictures, as far as a page shows them."""

    record: Episode
    pictures: tuple[Picture | None, ...]
    """The picture after each turn; None if the task provides no picture."""
    critic: tuple[dict[str, str], ...] = ()
    """For each turn, what the turn adds to the critic's input, by the name of the input."""
    left_out: tuple[str, ...] = ()
    """Sentences that state what of the episode is not shown."""

    @property
    def metrics(self) -> dict[str, float | None]:
        """The episode's metrics, without the parts of another metric that are 0, such as
        `reopened_text` beside `reopened`."""
        metrics = self.record.metrics
        return {
            name: value
            for name, value in metrics.items()
            if value != 0.0 or not any(name.startswith(f"{whole}_") for whole in metrics)
        }

    def drawn(self, turn: int, drawing: Drawing) -> str:
        """Returns the picture after a turn as HTML with changes marked; "" if there is none."""
        picture = self.pictures[turn] if turn < len(self.pictures) else None
        earlier = self.pictures[turn - 1] if turn else None
        return "" if picture is None else drawing.draw(picture, earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPair:
    """One algorithm's transcripts at its first and last evaluation."""

    algorithm: str
    seed: int
    before: PicturedEpisode
    after: PicturedEpisode | None
    """The transcript at the last evaluation; None if the run was evaluated only once."""

    @property
    def same_item(self) -> bool:
        if self.after is None:
            return False
        return self.before.record.item == self.after.record.item

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Pictures of both transcripts."""
        pictures = self.before.pictures + (() if self.after is None else self.after.pictures)
        return tuple(picture for picture in pictures if picture is not None)


def choose_samples(source: Source) -> list[TranscriptPair]:
    """Returns two transcripts for each algorithm: the same item at the first and at the last
    evaluation of the algorithm's first finished seed.

    The item is the first one that is in both evaluations. If no item is in both, the first episode
    of each evaluation is used. Runs without transcripts are skipped. Errors: CheckpointError for a
    picture that cannot be read.
    """
    samples = []
    for label in source.compared.algorithms:
        run = min((run for run in source.runs if run.algorithm == label), key=lambda run: run.seed)
        episodes = run.folder.episodes()
        if not episodes:
            continue
        iterations = [episode.iteration for episode in episodes]
        first, last = (
            [episode for episode in episodes if episode.iteration == iteration]
            for iteration in (min(iterations), max(iterations))
        )
        critic = critic_of(run)
        before, after = (_read(e, run, critic) for e in _same_item(first, last))
        single = min(iterations) == max(iterations)
        samples.append(
            TranscriptPair(
                algorithm=label, seed=run.seed, before=before, after=None if single else after
            )
        )
    return samples


def _same_item(first: list[Episode], last: list[Episode]) -> tuple[Episode, Episode]:
    for before in first:
        for after in last:
            if before.item == after.item:
                return before, after
    return first[0], last[0]


def _read(episode: Episode, run: Run, critic: StreamCritic | None) -> PicturedEpisode:
    shown = _shortened(episode)
    try:
        pictures = tuple(
            None if turn.picture is None else Picture.from_plain(turn.picture)
            for turn in shown.turns
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{run.folder.path / EPISODES}: a picture of item '{episode.item}' cannot be read "
            f"({error or type(error).__name__}); delete the run's folder and run it again"
        ) from None
    counts = (
        (kind, len(getattr(shown, kind)), len(getattr(episode, kind)))
        for kind in ("turns", "metrics")
    )
    left_out = tuple(
        f"the first {few:,} of {all_:,} {kind} are shown; all are in {EPISODES}"
        for kind, few, all_ in counts
        if few < all_
    )
    read = () if critic is None else critic_texts(critic, shown, run)
    return PicturedEpisode(record=shown, pictures=pictures, critic=read, left_out=left_out)


def _shortened(episode: Episode) -> Episode:
    """The episode within the limits of a page."""
    turns: list[RecordedTurn] = []
    left = LONGEST_EPISODE
    for turn in episode.turns[:MOST_TURNS]:
        texts = {
            side: {agent: _short(text) for agent, text in getattr(turn, side).items()}
            for side in ("observations", "actions")
        }
        names = ("global_info", "privileged_info", "rendered")
        more = {name: _short(getattr(turn, name)) for name in names}
        shown = [*texts.values(), *filter(None, more.values()), turn.picture]
        left -= len(json.dumps(shown, ensure_ascii=False)) + _grid_size(turn.picture)
        if left < 0:
            break
        turns.append(turn.model_copy(update=texts | more))
    return episode.model_copy(
        update={
            "item": _short(episode.item),
            "metrics": dict(islice(episode.metrics.items(), MOST_CURVES)),
            "turns": tuple(turns),
        }
    )


def _grid_size(picture: Any) -> int:
    """Estimated number of characters of a picture's empty grids."""
    try:
        return sum(_PER_LINE * sum(panel["size"]) for group in picture["groups"] for panel in group)
    except (KeyError, TypeError):  # no picture, or a damaged one
        return 0


def _short(text: str) -> str:
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]} ... ({more:,} more in {EPISODES})"
