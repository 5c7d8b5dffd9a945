"""pass@k: the probability that at least one of k programs for a problem passes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from colearn.config import EvaluationSettings
from colearn.contract.checked_task import item_name
from colearn.contract.types import Tree
from colearn.errors import ConfigError, TaskError

PASS = "pass"
"""The task metric that is 1 if an episode passed, 0 if it failed, and None if it is not scored."""


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


def require_pass(metrics: Mapping[str, float | None], item: Any) -> None:
    """Check the task's metrics at the end of an episode of an item. Errors: ConfigError for a task
    without the metric `pass`; TaskError if this metric is neither 0, 1 nor None."""
    if PASS not in metrics:
        raise ConfigError(
            f"evaluation.pass_at: the task has no metric '{PASS}'; leave the setting out"
        )
    if metrics[PASS] not in (0, 1, None):
        raise TaskError(
            f"task.metrics: '{PASS}' is {metrics[PASS]} for item '{item_name(item)}'; pass@k "
            "counts episodes, so return 1 or 0, or None for an episode that is not scored, or "
            "leave evaluation.pass_at out"
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
    """Returns `pass@k` for each k of `settings.pass_at` (Table 2): the mean over items of the
    unbiased estimate from the item's scored episodes.

    An episode that the task does not score (`pass` is None) is neither a success nor a failure. An
    item without a scored episode is left out, as it is of the mean of `pass`. If an item has fewer
    than k scored episodes, `pass@k` is left out, because no unbiased estimate exists.

    Errors: ConfigError if the task has no metric `pass`, or an item has fewer than k episodes;
    TaskError if `pass` is neither 0, 1 nor None.
    """
    if not settings.pass_at:
        return {}
    by_item = _outcomes(trees, settings, split_size)
    require_repeats(settings.pass_at, min(len(outcomes) for outcomes in by_item))
    counts = _scored(by_item)
    fewest = min((samples for samples, _ in counts), default=0)
    return {f"pass@{k}": mean_pass_at_k(counts, k) for k in settings.pass_at if k <= fewest}


def too_few_scored(
    trees: Sequence[Tree[Any]], settings: EvaluationSettings, split_size: int
) -> str | None:
    """Returns a line that names the `pass@k` that are left out because an item has too few scored
    episodes; None if none is left out."""
    if not settings.pass_at:
        return None
    counts = _scored(_outcomes(trees, settings, split_size))
    fewest = min((samples for samples, _ in counts), default=0)
    names = ", ".join(f"pass@{k}" for k in settings.pass_at if k > fewest)
    if not names:
        return None
    return (
        f"evaluation: no {names}: an item has only {fewest} scored episodes (the metric '{PASS}' "
        "of the others is None); raise evaluation.repeats"
    )


def _outcomes(
    trees: Sequence[Tree[Any]], settings: EvaluationSettings, split_size: int
) -> list[list[float | None]]:
    """The metric `pass` of the episodes of each item. Errors: as for `pass_metrics`."""
    played = settings.episodes or split_size
    by_item: dict[int, list[float | None]] = defaultdict(list)
    for tree in trees:
        metrics = tree.nodes[-1].metrics
        require_pass(metrics, tree.item)
        by_item[tree.episode % played % split_size].append(metrics[PASS])
    return list(by_item.values())


def _scored(by_item: Iterable[Sequence[float | None]]) -> list[tuple[int, int]]:
    """The numbers of scored and of passed episodes of each item that has a scored episode."""
    scored = ([outcome for outcome in outcomes if outcome is not None] for outcomes in by_item)
    return [(len(outcomes), sum(map(int, outcomes))) for outcomes in scored if outcomes]
