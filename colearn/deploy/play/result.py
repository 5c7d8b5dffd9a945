"""Computes the result of a play session: evaluation metrics, lost episodes and retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colearn.config import EvaluationSettings
from colearn.contract import Credit, Paid
from colearn.training.evaluation.pass_at_k import pass_metrics, too_few_scored
from colearn.training.evaluation.played import mean_outcomes, mean_turns

from .episode import PlayedEpisode

_LISTED = 12
"""Maximum number of lost episodes that the summary lists for each reason."""


@dataclass(frozen=True)
class Played:
    """All played episodes, in the order of their numbers."""

    episodes: list[PlayedEpisode]
    settings: EvaluationSettings
    split_size: int
    """Number of items in the split; `settings.episodes` may differ."""
    pays: frozenset[Paid]
    """The kinds of reward that the task pays. The metric `return` is the sum of all kinds."""
    credit: Credit
    """Credit assignment with which the training objective is computed."""

    @property
    def whole(self) -> list[PlayedEpisode]:
        """Episodes played to their end."""
        return [episode for episode in self.episodes if episode.lost is None]

    @property
    def lost(self) -> list[PlayedEpisode]:
        """Episodes that ended early because an agent was lost."""
        return [episode for episode in self.episodes if episode.lost is not None]

    @property
    def retries(self) -> Counter[str]:
        """Number of repeated attempts of each agent."""
        return sum((Counter(episode.retries) for episode in self.episodes), Counter[str]())

    @property
    def recovered(self) -> Counter[str]:
        """For each agent, the number of sessions that a server lost and that were replayed."""
        return sum((Counter(episode.recovered) for episode in self.episodes), Counter[str]())

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Return mean metrics over the completed episodes, under the names that `evaluate_team`
        uses.

        `tokens_per_turn` is missing if an endpoint does not count its tokens, and `pass@k` if an
        item has fewer completed episodes than the largest k, or fewer scored ones than k. Empty
        without a completed episode.

        Errors: ConfigError if `pass_at` is set and the task has no metric `pass`; TaskError if this
        metric is neither 0, 1 nor None.
        """
        completed = self.whole
        if not completed:
            return {}
        trees = [episode.tree for episode in completed]
        metrics = mean_outcomes(trees, self.pays, self.credit)
        if self._fewest >= self._largest_k:
            metrics |= pass_metrics(trees, self.settings, self.split_size)
        metrics["turns"] = mean_turns(trees)
        turns = [replies.values() for episode in completed for replies in episode.replies]
        counts = [reply.tokens for replies in turns for reply in replies]
        known = [count for count in counts if count is not None]
        if known and len(known) == len(counts):
            metrics["tokens_per_turn"] = sum(known) / len(known)
        if turns:
            slowest = [max(reply.seconds for reply in replies) for replies in turns]
            metrics["response_seconds"] = float(np.mean(slowest))
        return metrics

    def summary(self) -> Iterator[str]:
        """Returns lines of text on lost episodes, the reasons for the losses, and retries."""
        lost = self.lost
        yield f"played {len(self.episodes) - len(lost)} of {len(self.episodes)} episodes"
        reasons: dict[str, list[str]] = {}
        for episode in lost:
            assert episode.lost is not None
            place = f"{episode.tree.episode} (turn {episode.lost.turn + 1})"
            reasons.setdefault(episode.lost.reason, []).append(place)
        for reason, places in reasons.items():
            named = ", ".join(places[:_LISTED]) + (", ..." if len(places) > _LISTED else "")
            yield f"lost {len(places)}: {reason}; episodes {named}"
        if self._fewest < self._largest_k:
            yield (
                f"no pass@k: k = {self._largest_k} needs as many episodes of each item, "
                f"of one {self._fewest} were played out"
            )
        else:
            whole = [episode.tree for episode in self.whole]
            if (line := too_few_scored(whole, self.settings, self.split_size)) is not None:
                yield line
        for agent, count in self.retries.items():
            yield f"retried {count}: agent '{agent}'"
        for agent, count in self.recovered.items():
            yield f"went on without a session {count}: agent '{agent}'"

    @property
    def _largest_k(self) -> int:
        return max(self.settings.pass_at, default=0)

    @property
    def _fewest(self) -> int:
        """Number of completed episodes of the item that has the fewest."""
        round_size = self.settings.episodes or self.split_size
        counts = Counter(
            episode.tree.episode % round_size % self.split_size for episode in self.whole
        )
        return min(counts[item] for item in range(min(round_size, self.split_size)))
