"""Plans the rows of an iteration's update, and splits the rows into minibatches and micro-batches
as the run does."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Row
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.critic.stream import text_ids
from colearn.training.learners.minibatch import minibatches
from colearn.training.learners.packed_rows import actor_rows

from .architecture import Architectures
from .episodes import limit_tokens
from .learning import Work, cut_rows, padded

Trees = Sequence[Tree[Any]]


@dataclass(frozen=True, slots=True)
class Totals:
    """Work of one learner in all epochs of an iteration."""

    epochs: int
    steps: int
    """Number of optimiser steps."""
    micro_batches: int
    tokens: int
    """Number of tokens, including padding."""


@dataclass(frozen=True, slots=True)
class Updates:
    """Work of each learner in one iteration."""

    works: Mapping[NetworkKey, Work]
    """The largest micro-batch of each learner; a learner without rows has no entry."""
    totals: Mapping[NetworkKey, Totals]
    """Totals over all epochs of an iteration; joint passes are in the totals of one learner."""


def plan_updates(run: ResolvedRun, trees: Trees, architectures: Architectures) -> Updates:
    """Plan an iteration's updates.

    Errors: ConfigError if a critic's input exceeds the critic's maximum length, or if the critic's
    model is not on this machine.
    """
    rows = _actor_rows(run, trees) | _critic_rows(run, trees, architectures)
    works: dict[NetworkKey, Work] = {}
    totals: dict[NetworkKey, Totals] = {}
    unit = run.config.train.minibatch_unit
    for first, *others in _groups(run, rows):
        epochs, minibatch = run.schedule_of(first)
        of_group = [row for key in (first, *others) for row in rows[key]]
        batches = (
            [row for row in of_group if row.tree in numbers]
            for numbers in map(set, minibatches(trees, minibatch, range(len(trees)), unit))
        )
        steps = [cut_rows(batch, run.token_budget) for batch in batches if batch]
        if not steps:  # its agents act in none of the items that were read
            continue
        micros = [rows for step in steps for rows in step]
        step = max(steps, key=lambda step: max(map(padded, step)))
        work = Work(max(step, key=padded), several=len(step) > 1)
        total = Totals(
            epochs=epochs,
            steps=epochs * len(steps),
            micro_batches=epochs * len(micros),
            tokens=epochs * sum(map(padded, micros)),
        )
        works |= dict.fromkeys((first, *others), work)
        totals |= {first: total}
        totals |= dict.fromkeys(others, replace(total, micro_batches=0, tokens=0))
    return Updates(works, totals)


def _groups(run: ResolvedRun, keys: Iterable[NetworkKey]) -> list[list[NetworkKey]]:
    """Return the learners with joint passes, whose work is counted as that of the first one. A
    critic joins the actors if its steps need not precede the actors' advantages."""
    critic = run.config.critic
    joined = critic is not None and not critic.own_schedule and run.parts.fixed_advantages
    groups: dict[Hashable, list[NetworkKey]] = {}
    for key in keys:
        group: Hashable = key
        if run.joins(key):
            step = None if joined else key.kind
            group = run.base_of(key), run.settings(key).checkpointing, step
        groups.setdefault(group, []).append(key)
    return list(groups.values())


def _actor_rows(run: ResolvedRun, trees: Trees) -> dict[NetworkKey, list[Row]]:
    """Return the rows of each learner, ordered by tree."""
    by_learner: dict[NetworkKey, list[Row]] = {}
    for number, tree in enumerate(trees):
        for agent, settings in run.config.language_agents.items():
            key = NetworkKey("actor", settings.model)
            if key not in run.learners:
                continue
            rows = actor_rows(
                tree,
                agent,
                number=number,
                window=settings.window,
                budget=None if run.heads else run.token_budget,
                value=run.parts.critic.on_actor if run.parts.critic and run.heads else None,
            )
            trained_rows = (row for row in rows if row.spans or row.marks)
            by_learner.setdefault(key, []).extend(trained_rows)
    return by_learner


def _critic_rows(
    run: ResolvedRun, trees: Trees, architectures: Architectures
) -> dict[NetworkKey, list[Row]]:
    critic, settings = run.parts.critic, run.config.critic
    if critic is None or settings is None or settings.path is None:
        return {}
    ids = text_ids(architectures.tokenizer(settings.path, "critic.path"))
    limit = settings.longest_stream(architectures.config(settings.path, "critic.path"))
    by_learner: dict[NetworkKey, list[Row]] = {}
    for number, tree in enumerate(trees):
        for reader, value_model in run.value_models.items():
            try:
                with calling_part("algorithm.critic", critic):
                    row = critic.row(tree, reader, limit_tokens(ids), limit=limit)
            except ConfigError as error:
                if settings.path not in architectures.without_tokenizer:
                    raise
                text = str(error).removeprefix("critic.max_length: ")
                architectures.assume("critic.max_length", f"may be too small: {text}")
                row = critic.row(tree, reader, limit_tokens(ids), limit=sys.maxsize)
            if not row.marks:
                continue
            key = NetworkKey("critic", value_model)
            by_learner.setdefault(key, []).append(replace(row, tree=number))
    return by_learner
