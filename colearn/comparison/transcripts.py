"""Which episodes the report shows: the same item before and after training, not the best one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colearn.contract.picture import Picture
from colearn.errors import CheckpointError

from .runs import read_lines
from .source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A record of episodes.jsonl, and its pictures."""

    record: dict[str, Any]
    pictures: tuple[Picture | None, ...]
    """After each turn; None where the task gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One algorithm's transcripts at its first and last evaluation."""

    algorithm: str
    seed: int
    before: Episode
    after: Episode | None
    """None where the run was evaluated once."""

    @property
    def same_item(self) -> bool:
        """Whether both are of one item."""
        if self.after is None:
            return False
        return self.before.record.get("item") == self.after.record.get("item")

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All pictures of both."""
        every = self.before.pictures + (() if self.after is None else self.after.pictures)
        return tuple(picture for picture in every if picture is not None)


def choose_samples(source: Source) -> list[Sample]:
    """For each algorithm, from its first finished seed: the first item that both evaluations hold.

    Where no item is in both, the first episode of each. Runs without transcripts give no sample.
    Errors: CheckpointError for a picture that cannot be read.
    """
    samples = []
    for label in source.compared.algorithms:
        run = min((run for run in source.runs if run.algorithm == label), key=lambda run: run.seed)
        path = run.folder / "episodes.jsonl"
        episodes = list(read_lines(path))
        if not episodes:
            continue
        iterations = [int(episode["iteration"]) for episode in episodes]
        first, last = (
            [e for e, at in zip(episodes, iterations, strict=True) if at == which]
            for which in (min(iterations), max(iterations))
        )
        before, after = (_read(record, path) for record in _same_item(first, last))
        once = min(iterations) == max(iterations)
        samples.append(
            Sample(algorithm=label, seed=run.seed, before=before, after=None if once else after)
        )
    return samples


def _same_item(
    first: list[dict[str, Any]], last: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    for before in first:
        for after in last:
            if before.get("item") == after.get("item"):
                return before, after
    return first[0], last[0]


def _read(record: dict[str, Any], path: Path) -> Episode:
    try:
        pictures = tuple(
            Picture.from_plain(turn["picture"]) if "picture" in turn else None
            for turn in record.get("turns", ())
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: a picture of item {record.get('item')!r} cannot be read ({error}); "
            "delete the run's folder and run it again"
        ) from error
    return Episode(record=record, pictures=pictures)
