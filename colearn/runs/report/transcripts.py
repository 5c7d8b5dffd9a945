"""Selects transcripts: of the same item before and after training, not the best ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.contract.picture import Picture
from colearn.errors import CheckpointError
from colearn.runs.record import Episode
from colearn.runs.record.folder import EPISODES
from colearn.runs.record.limits import LONGEST_TEXT
from colearn.runs.report.draw_picture import Drawing

from .source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturedEpisode:
    """An episode and its pictures."""

    record: Episode
    pictures: tuple[Picture | None, ...]
    """The picture after each turn; None if the task provides no picture."""

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
        before, after = (_read(e, run.folder.path) for e in _same_item(first, last))
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


def _read(episode: Episode, folder: Path) -> PicturedEpisode:
    try:
        pictures = tuple(
            None if turn.picture is None else Picture.from_plain(turn.picture)
            for turn in episode.turns
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{folder / EPISODES}: a picture of item '{episode.item}' cannot be read "
            f"({error or type(error).__name__}); delete the run's folder and run it again"
        ) from None
    return PicturedEpisode(record=_shortened(episode), pictures=pictures)


def _shortened(episode: Episode) -> Episode:
    """The episode with texts of at most `LONGEST_TEXT` characters."""
    turns = (
        turn.model_copy(
            update={
                side: {agent: _short(text) for agent, text in getattr(turn, side).items()}
                for side in ("observations", "actions")
            }
        )
        for turn in episode.turns
    )
    return episode.model_copy(
        update={
            "item": _short(episode.item),
            "picture": None if episode.picture is None else _short(episode.picture),
            "turns": tuple(turns),
        }
    )


def _short(text: str) -> str:
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]} ... ({more:,} more in {EPISODES})"
