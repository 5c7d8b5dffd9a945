"""Which episodes the report shows: the same item before and after training, not the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .runs import read_lines
from .source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One algorithm's transcripts at its first and last evaluation (records of episodes.jsonl)."""

    algorithm: str
    seed: int
    before: dict[str, Any]
    after: dict[str, Any] | None
    """None where the run was evaluated once."""

    @property
    def same_item(self) -> bool:
        return self.after is not None and self.before.get("item") == self.after.get("item")


def choose_samples(source: Source) -> list[Sample]:
    """For each algorithm, from its first finished seed: the first item that both evaluations hold.

    Where no item is in both, the first episode of each. Runs without transcripts give no sample.
    """
    samples = []
    for label in source.compared.algorithms:
        run = min((run for run in source.runs if run.algorithm == label), key=lambda run: run.seed)
        episodes = list(read_lines(run.folder / "episodes.jsonl"))
        if not episodes:
            continue
        iterations = [int(episode["iteration"]) for episode in episodes]
        first, last = (
            [e for e, at in zip(episodes, iterations, strict=True) if at == which]
            for which in (min(iterations), max(iterations))
        )
        before, after = _same_item(first, last)
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
