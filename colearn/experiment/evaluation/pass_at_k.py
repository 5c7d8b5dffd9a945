"""pass@k: the probability that at least one of k programs for a problem passes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from colearn.config import EvaluationSettings
from colearn.errors import ConfigError
from colearn.types import Tree

PASS = "pass"
"""The task metric that is 1 if an episode passed, else 0."""


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """Returns the unbiased estimate 1 - C(n-c, k) / C(n, k) of pass@k from n samples, of which c
    passed (Chen et al., 2021). The estimate is computed as a product of at most k ratios, so that
    no binomial coefficient overflows.

    Errors: ConfigError unless 0 <= passed <= samples and 1 <= k <= samples.
    """
    if not 0 <= passed <= samples:
        raise ConfigError(f"passed: {passed} must lie between 0 and samples ({samples})")
    if not 1 <= k <= samples:
        raise ConfigError(
            f"k: {k} must lie between 1 and samples ({samples}); draw more samples or lower k"
        )
    smaller, larger = sorted((passed, k))
    # C(n-c, k) / C(n, k) is symmetric in c and k, so the shorter of the two products serves.
    return 1.0 - math.prod((samples - larger - i) / (samples - i) for i in range(smaller))


def mean_pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> float:
    """The mean of pass@k over problems; `counts` has one pair (samples, passed) per problem.

    Errors: ConfigError as in `pass_at_k`, or if there are no problems.
    """
    values = [pass_at_k(samples, passed, k) for samples, passed in counts]
    if not values:
        raise ConfigError("counts: is empty; give (samples, passed) of at least one problem")
    return math.fsum(values) / len(values)


def require_pass(metrics: Mapping[str, float | None]) -> None:
    """Check the task's metrics. Errors: ConfigError for a task without the metric `pass`."""
    if PASS not in metrics:
        raise ConfigError(
            f"evaluation.pass_at: the task has no metric '{PASS}'; leave the setting out"
        )


def require_repeats(pass_at: Sequence[int], fewest: int) -> None:
    """Check the number of episodes. Errors: ConfigError if an item has fewer episodes than the
    largest k."""
    if fewest < max(pass_at):
        raise ConfigError(
            f"evaluation.pass_at: k = {max(pass_at)} needs as many episodes of each item, "
            f"there are {fewest}; raise evaluation.repeats"
        )


def pass_metrics(
    trees: Sequence[Tree[Any]], settings: EvaluationSettings, split_size: int
) -> dict[str, float]:
    """Returns `pass@k` for each k of `settings.pass_at` (Table 2); the samples for a problem are
    the episodes of an item.

    Errors: ConfigError if the task has no metric `pass`, or an item has fewer than k episodes.
    """
    if not settings.pass_at:
        return {}
    played = settings.episodes or split_size
    passed: dict[int, list[float]] = defaultdict(list)
    for tree in trees:
        end = tree.nodes[-1]
        require_pass(end.metrics)
        passed[tree.episode % played % split_size].append(end.metrics[PASS] or 0.0)
    require_repeats(settings.pass_at, min(len(values) for values in passed.values()))
    counts = [(len(values), round(sum(values))) for values in passed.values()]
    return {f"pass@{k}": mean_pass_at_k(counts, k) for k in settings.pass_at}
