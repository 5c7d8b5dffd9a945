"""An updater, value models and their networks, as tests of an update set them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from local_learners import local_learner
from tiny import byte_tokenizer, tiny_model

from colearn.config import OptimizerSettings
from colearn.contract import (
    Accumulated,
    Advantage,
    AgentValues,
    Algorithm,
    Critic,
    Episodes,
    Learner,
    NetworkKey,
    Parts,
    ValueLoss,
)
from colearn.contract.rows import Row
from colearn.methods.values.critics import Critics
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.learners.reader import StepResult, rows_of
from colearn.training.update.actors import Actors
from colearn.training.update.updater import Updater


def new_updater(
    parts: Parts,
    actors: Mapping[str, Learner],
    *,
    specs: Mapping[str, AgentSpec] | None = None,
    critic: Critics | None = None,
    shared_head: bool = False,
    epochs: int = 1,
    minibatch: int | None = None,
    **settings: Any,
) -> Updater:
    """One step on the whole batch, and each agent on the model of its name, unless told else."""
    usual: dict[str, Any] = {
        "references": {},
        "seed": 0,
        "schedule": UpdateSchedule(epochs, minibatch),
        "token_budget": 4096,
    }
    return Updater(
        parts=parts,
        actors=Actors(
            specs=specs or {agent: AgentSpec(model=agent) for agent in actors},
            learners=actors,
            critic=parts.critic if shared_head else None,
        ),
        critic=critic,
        **(usual | settings),
    )


def new_critics(critic: Critic, learners: Mapping[str, Learner]) -> Critics:
    """Value models that read bytes."""
    tokenizer = byte_tokenizer()
    return Critics(
        critic=critic,
        learners=learners,
        tokenize=lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
        max_length=4096,
    )


def value_gradients(
    critics: Critics,
    advantage: Advantage,
    episodes: Episodes,
    settings: ValueLoss | None = None,
    old: Sequence[AgentValues] | None = None,
) -> tuple[list[AgentValues], dict[str, float]]:
    """One pass of every value model, without its step: the values that it reads, and the means over
    models of its metrics. `old` are the values at rollout; frozen targets follow from them."""
    settings, trees = settings or ValueLoss(), list(episodes)
    by_model = critics.rows(trees)
    if old is not None:
        critics.add_values("old_values", by_model, trees, dict(enumerate(old)))
    if settings.frozen_targets:
        assert old is not None
        targets = advantage.targets(episodes, old)
        critics.add_values("targets", by_model, trees, dict(enumerate(targets)))
    steps: dict[NetworkKey, StepResult] = {}
    metrics: dict[str, float] = {}
    for name, rows in by_model.items():
        every = rows_of(rows, range(len(trees)))
        current = None if settings.frozen_targets else dict(enumerate(episodes))
        objective = critics.objective(advantage, settings, every, current)
        assert objective is not None, "a target is scored"
        accumulated = critics.learners[name].accumulate(every, objective)
        steps[NetworkKey("critic", name)] = StepResult(accumulated, {})
        for key, value in accumulated.metrics.items():
            metrics[key] = metrics.get(key, 0.0) + value / len(by_model)
    return list(critics.read(trees, by_model, range(len(trees)), steps).values()), metrics


def head_of(seed: int, size: float = 0.3) -> ValueHead:
    """One that already says something, so that values differ."""
    head = ValueHead(32)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head.linear.weight.normal_(0.0, size)
    return head


def value_network(seed: int, *, size: float = 0.3, dtype: torch.dtype = torch.float64) -> Network:
    return Network(Base(tiny_model("llama", seed=seed, dtype=dtype)), head=head_of(seed, size))


def learner_of(
    name: str, network: Network, *, rate: float = 1e-3, **settings: Any
) -> NetworkLearner:
    return local_learner(
        name, network, OptimizerSettings(learning_rate=rate, **settings), token_budget=4096
    )


class Pass(NamedTuple):
    """One minibatch of a learner."""

    rows: Sequence[Row]
    objective: Any
    accumulated: Accumulated


def passes_of(learner: Any) -> list[Pass]:
    """A list that receives every pass that the learner takes from now on."""
    passes: list[Pass] = []
    real = learner.accumulate

    def noted(rows: Sequence[Row], objective: Any) -> Accumulated:
        accumulated: Accumulated = real(rows, objective)
        passes.append(Pass(rows, objective, accumulated))
        return accumulated

    learner.accumulate = noted
    return passes


def updater_of(
    algorithm: Algorithm,
    team: Any,
    *,
    rate: float = 1e-3,
    head: float = 0.3,
    **settings: Any,
) -> Updater:
    """Every agent on a model of its own, every reader of the critic too."""
    parts = algorithm.parts()
    critics = None
    if parts.critic is not None:
        readers = parts.critic.readers(tuple(team.voices))
        learners = {
            reader: learner_of(reader, value_network(20 + number, size=head), rate=rate)
            for number, reader in enumerate(readers)
        }
        critics = new_critics(parts.critic, learners)
    actors = {agent: learner_of(agent, team.network(agent), rate=rate) for agent in team.voices}
    return new_updater(parts, actors, critic=critics, **settings)
