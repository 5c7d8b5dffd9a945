"""What the cases of `learner_cases.py` are made of: learners, networks, rows and a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tiny
from torch import Tensor

from colearn.config import OptimizerSettings
from colearn.contract import Learner, Objective, PolicyBatch
from colearn.contract.algorithm import ValueLoss
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.methods.loss.value import value_loss
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead
from colearn.training.learners.kinds import DeepSpeed, Local
from colearn.training.learners.learner import NetworkLearner

Make = Callable[..., Learner]
"""(name, network, token budget of a micro-batch) to a learner."""
Result = dict[str, Any]

SETTINGS = OptimizerSettings(
    learning_rate=1e-3,
    weight_decay=0.1,
    max_grad_norm=0.5,
    warmup_steps=3,
    schedule="cosine",
)
TOKEN_BUDGET = 150
EPISODES = 7
UPDATES = 10


def maker(learner: str) -> Make:
    """`local`, or the name or path of a DeepSpeed config."""

    def make(name: str, network: Network, token_budget: int = TOKEN_BUDGET) -> Learner:
        kind = Local() if learner == "local" else DeepSpeed(config=learner)
        optimizer = kind.build(name, network, SETTINGS)
        return NetworkLearner(name, network, optimizer, token_budget=token_budget)

    return make


def network(*, head: bool = False, seed: int = 5) -> Network:
    base = Base(tiny.tiny_model(seed=seed))
    return Network(base, head=ValueHead(base.config.hidden_size) if head else None)


def sampled() -> list[Row]:
    """Ragged rows of one agent, an episode in each group, with fixed advantages and targets."""
    team = tiny.cast()
    trees = tiny.play(tiny.Notes(items=EPISODES, ends=True), team, seed=3)
    rows = []
    for number, tree in enumerate(trees):
        made = team.rows(tree, "ada", number=number, value="observation")
        rows += [
            replace(
                row,
                advantages=tuple((number * 7 + j) % 5 - 1.5 for j in range(len(row.spans))),
                targets=tuple((number * 3 + j) % 4 - 0.5 for j in range(len(row.marks))),
            )
            for row in made
        ]
    return rows


def only(rows: list[Row], *keep: str) -> list[Row]:
    """The same rows without spans, without marks, or with both."""
    empty: dict[str, Any] = {}
    if "spans" not in keep:
        empty |= {"spans": (), "advantages": (), "behaviour": ()}
    if "marks" not in keep:
        empty |= {"marks": (), "targets": ()}
    return [replace(row, **empty) for row in rows]


def objective(rows: list[Row]) -> Objective:
    samples, marks = sum(len(row.spans) for row in rows), sum(len(row.marks) for row in rows)
    tokens = sum(row.action_tokens for row in rows)
    loss_of = PolicyGradient()

    def parts(outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        loss, metrics = outputs.logprobs.sum() * 0 + outputs.values.sum() * 0, {}
        if samples:
            policy, metrics = loss_of(
                PolicyBatch(
                    logprobs=outputs.logprobs,
                    action_of=batch.action_of,
                    advantages=batch.per_action("advantages"),
                    old_logprobs=outputs.logprobs.detach(),
                    behaviour=outputs.logprobs.detach(),
                    ref_logprobs=None,
                    entropy=None,
                    total_samples=samples,
                    total_tokens=tokens,
                )
            )
            loss = loss + policy
        if marks:
            value, value_metrics = value_loss(
                outputs.values, batch.per_action("targets"), None, ValueLoss(), marks
            )
            loss, metrics = loss + value, metrics | value_metrics
        return loss, metrics

    return parts


def result(*learners: Learner, log: list[dict[str, float]]) -> Result:
    weights = {f"{x.name}.{k}": v.clone() for x in learners for k, v in x.weights().items()}
    return {"weights": weights, "log": log}


def accumulated(learner: Learner, rows: list[Row], whole: Objective) -> dict[str, float]:
    """The metrics of one call."""
    return dict(learner.accumulate(rows, whole).metrics)


def train(learner: Learner, rows: list[Row], updates: int) -> list[dict[str, float]]:
    """The schedule goes down over twelve updates."""
    return [
        {
            **learner.accumulate(rows, objective(rows)).metrics,
            **learner.step(number / 12),
        }
        for number in range(updates)
    ]
