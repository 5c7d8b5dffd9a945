"""The metrics of an update, computed from what it kept: means over optimiser steps, explained
variance, statistics of advantages, and the similarity of answers in the groups that an advantage
compares (MHGPO, Figures 7 and 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from colearn.contract import Advantages, AgentValues, AnswerGroup, Episodes, Parts
from colearn.contract.part_errors import calling_part
from colearn.methods.values.explained_variance import action_worth, explained_variance, pairs
from colearn.methods.values.item_means import Offsets
from colearn.programs.workflow.qa import f1
from colearn.training.learners.reader import Steps

_ZERO = 1e-8
"""Largest magnitude of an advantage that counts as 0: means of equal returns are rounded."""


@dataclass(slots=True, kw_only=True)
class Kept:
    """What an update keeps for its metrics."""

    parts: Parts
    """The algorithm's parts at this point of the training budget."""
    trees: Episodes
    """The iteration's trees, with credited rewards."""
    means: Offsets = ()
    """Mean returns by item and turn, for every tree; empty without a critic."""
    values: dict[int, AgentValues] = field(default_factory=dict)
    """The first values of each tree that advantages were computed from, by tree number. No step had
    been taken on the tree."""
    advantages: list[tuple[Episodes, Advantages, Sequence[AgentValues] | None]] = field(
        default_factory=list
    )
    """Trees, their advantages and the values from which the advantages were computed; one entry for
    every computation."""
    critic_steps: list[Steps] = field(default_factory=list)
    """Minibatches of critics with a separate schedule."""
    joint_steps: list[Steps] = field(default_factory=list)
    """Minibatches of the joint schedule."""


def update_metrics(kept: Kept) -> dict[str, float]:
    """Returns the metrics as means over the update's minibatches. `optimizer_steps` counts the
    minibatches of the joint schedule in which at least one model took a step."""
    critic = kept.parts.critic
    of_state = critic is not None and critic.of_state
    by_metric: dict[str, list[float]] = defaultdict(list)
    entries = [
        *(advantage_metrics(a, trees, v, of_state=of_state) for trees, a, v in kept.advantages),
        *map(_step_metrics, chain(kept.critic_steps, kept.joint_steps)),
    ]
    for entry in entries:
        for name, value in entry.items():
            by_metric[name].append(value)
    with calling_part("algorithm.advantage", kept.parts.advantage):
        groups = kept.parts.advantage.answer_groups(kept.trees)
    return {
        **{name: float(np.mean(values)) for name, values in by_metric.items()},
        **similarity_metrics(groups),
        "optimizer_steps": float(sum(map(bool, kept.joint_steps))),
    }


def _step_metrics(steps: Steps) -> dict[str, float]:
    """Returns the metrics of one minibatch: those of actors by model; those of value models as
    means over the value models, except for the metrics of their optimiser steps."""
    metrics: dict[str, float] = {}
    critics = sum(key.kind == "critic" for key in steps)
    for key, (accumulated, stepped) in steps.items():
        if key.kind == "actor":
            of_model = {**accumulated.metrics, **stepped}
            metrics |= {f"{key.model}/{name}": value for name, value in of_model.items()}
            continue
        for name, value in accumulated.metrics.items():
            metrics[f"critic/{name}"] = metrics.get(f"critic/{name}", 0.0) + value / critics
        metrics |= {f"critic/{key.model}/{name}": value for name, value in stepped.items()}
    return metrics


def advantage_metrics(
    advantages: Advantages,
    episodes: Episodes,
    values: Sequence[AgentValues] | None,
    *,
    of_state: bool = True,
) -> dict[str, float]:
    """Returns the mean, standard deviation and number of the advantages, and the share that is 0.
    If `values` are given, also returns the fraction of the credited returns' variance that the
    values explain. If alternative actions have values, also returns the part of this fraction that
    the action explains. If `of_state` is true, the return of a node is the return after the node;
    otherwise, it is the return of the edge into the node."""
    actions: list[float | tuple[float, ...]] = [
        value for tree in advantages for node in tree for value in node.values()
    ]
    metrics = {"advantage/actions": float(len(actions))}
    flat = np.hstack([np.asarray(value, dtype=float) for value in (*actions, ())])
    if len(flat):
        metrics |= {
            "advantage/mean": float(np.mean(flat)),
            "advantage/std": float(np.std(flat)),
            "advantage/zero": float(np.mean(np.abs(flat) <= _ZERO)),
        }
    if values is not None:
        value_pairs = list(pairs(episodes, values, of_state=of_state))
        if not value_pairs:
            return metrics  # no trained agent acted, or nothing is scored
        explained = explained_variance(value_pairs)
        if explained is not None:
            metrics["critic/explained_variance"] = explained
        worth = action_worth(episodes, values)
        if worth is not None:
            metrics["critic/action_worth"] = worth
        metrics["critic/value_mean"] = float(np.mean([pair.value for pair in value_pairs]))
    return metrics


def similarity_metrics(groups: Sequence[AnswerGroup]) -> dict[str, float]:
    """Computes two metrics for each agent: the mean word-level F1 over pairs of answers in a group,
    and the fraction of pairs that answer the same prompt. Groups have equal weight; every group has
    at least two answers."""
    by_metric: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        compared = list(combinations(range(len(group.answers)), 2))
        alike = [f1(group.answers[first], [group.answers[second]]) for first, second in compared]
        same_prompt = [group.prompts[first] == group.prompts[second] for first, second in compared]
        by_metric[f"{group.agent}/similarity"].append(float(np.mean(alike)))
        by_metric[f"{group.agent}/same_prompt"].append(float(np.mean(same_prompt)))
    return {name: float(np.mean(values)) for name, values in by_metric.items()}
