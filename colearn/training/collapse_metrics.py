"""Computes the metrics of an update's episodes from which a collapse is detected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import isnan
from typing import Any

from colearn.contract import Paid
from colearn.contract.scored import as_number
from colearn.contract.types import Tree

_INVALID = ("invalid", "illegal", "malformed")
"""Metrics of tasks for an episode that ends with an action that the task rejects."""
_LEGAL = "legal"
"""Metric of tasks for an episode without a rejected action."""


def cut_answers(trees: Sequence[Tree[Any]], agents: Collection[str] | None = None) -> float | None:
    """Fraction of the answers of `agents` (None: of all) that were cut at their token limit; None
    without an answer."""
    cut = [
        action.finish == "length"
        for tree in trees
        for node in tree.nodes
        for agent, action in node.actions.items()
        if agents is None or agent in agents
    ]
    return sum(cut) / len(cut) if cut else None


def collapse_metrics(
    trees: Sequence[Tree[Any]], pays: frozenset[Paid], models: Mapping[str, str]
) -> dict[str, float]:
    """Returns `best_return`, `cut_answers`, `invalid_episodes` if the task measures it, and
    `MODEL/top_answer` if a trained agent answered different prompts.

    models: the model of each agent that is trained.
    """
    metrics: dict[str, float] = {}
    known = [value for tree in trees for value in _branch_returns(tree, pays)]
    if known:
        metrics["best_return"] = max(known)
    cut = cut_answers(trees, models)
    if cut is not None:
        metrics["cut_answers"] = cut
    ends = [node.metrics for tree in trees for node in tree.nodes if node.metrics]
    rejected = [invalid for end in ends if (invalid := _rejected(end)) is not None]
    if rejected:
        metrics["invalid_episodes"] = sum(rejected) / len(rejected)
    for model, share in _top_answers(trees, models).items():
        metrics[f"{model}/top_answer"] = share
    return metrics


def _branch_returns(tree: Tree[Any], pays: frozenset[Paid]) -> list[float]:
    """The undiscounted return of each branch that was played to its end: of the team, or the mean
    over agents if the task does not pay the team. Branches that are not scored are left out."""
    sums = [0.0] * len(tree.nodes)
    for node in tree.nodes[1:]:
        if "team" in pays:
            reward = as_number(node.reward)
        else:
            paid = [as_number(node.local_rewards.get(agent, 0.0)) for agent in tree.agents]
            reward = sum(paid) / len(paid)
        assert node.parent is not None, "only the root has no parent"
        sums[node.index] = sums[node.parent] + reward
    parents = {node.parent for node in tree.nodes}
    ends = (
        node
        for node in tree.nodes[1:]
        if node.index not in parents and not (node.cut or node.truncated)
    )
    return [sums[node.index] for node in ends if not isnan(sums[node.index])]


def _rejected(end: Mapping[str, float | None]) -> bool | None:
    """Whether an episode ended with an action that the task rejected; None if not measured."""
    measured = [value == 1.0 for name in _INVALID if (value := end.get(name)) is not None]
    legal = end.get(_LEGAL)
    measured += [] if legal is None else [legal == 0.0]
    return any(measured) if measured else None


def _top_answers(trees: Sequence[Tree[Any]], models: Mapping[str, str]) -> dict[str, float]:
    """For each model, the share of the most frequent answer of one of its agents, the largest of
    its agents that answered different prompts."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    prompts: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in tree.nodes:
            if node.parent is None:
                continue
            for agent, action in node.actions.items():
                if agent in models:
                    answers[agent][action.text] += 1
                    prompts[agent].add(tree.nodes[node.parent].observations[agent].text)
    shares: dict[str, float] = {}
    for agent, counts in answers.items():
        if len(prompts[agent]) > 1:
            share = counts.most_common(1)[0][1] / counts.total()
            shares[models[agent]] = max(share, shares.get(models[agent], 0.0))
    return shares
