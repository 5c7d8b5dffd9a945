"""Similarity metrics of the groups that an advantage compares (MHGPO, Figures 7 and 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from colearn.contract import AnswerGroup
from colearn.workflow.qa import f1


def similarity_metrics(groups: Sequence[AnswerGroup]) -> dict[str, float]:
    """Computes two metrics for each agent: the mean word-level F1 over pairs of answers in a group,
    and the fraction of pairs that answer the same prompt. Groups have equal weight; every group has
    at least two answers."""
    by_metric: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        pairs = list(combinations(range(len(group.answers)), 2))
        alike = [f1(group.answers[one], [group.answers[other]]) for one, other in pairs]
        same = [group.prompts[one] == group.prompts[other] for one, other in pairs]
        by_metric[f"{group.agent}/similarity"].append(float(np.mean(alike)))
        by_metric[f"{group.agent}/same_prompt"].append(float(np.mean(same)))
    return {name: float(np.mean(values)) for name, values in by_metric.items()}
