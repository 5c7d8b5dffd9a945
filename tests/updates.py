"""An updater, a critic's trainer and its network, as tests of an update set them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tiny import byte_tokenizer, tiny_model

from colearn.agents import Voice
from colearn.config import OptimizerSettings
from colearn.contract import Advantage, Algorithm, Critic, Learner, Parts, ValueLoss
from colearn.experiment.update.critics import CriticTrainer
from colearn.experiment.update.updater import Updater
from colearn.learn.local import LocalLearner
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.value_head import ValueHead


def new_updater(
    parts: Parts,
    actors: Mapping[str, Learner],
    *,
    voices: Mapping[str, Voice] | None = None,
    critic: CriticTrainer | None = None,
    **settings: Any,
) -> Updater:
    """One step on the whole batch, and each agent on the model of its name, unless told else."""
    usual: dict[str, Any] = {
        "shared_head": False,
        "references": {},
        "seed": 0,
        "epochs": 1,
        "minibatch": None,
        "token_budget": 4096,
    }
    return Updater(
        parts=parts,
        voices=voices or {agent: Voice(model=agent) for agent in actors},
        actors=actors,
        critic=critic,
        **(usual | settings),
    )


def new_trainer(
    critic: Critic,
    advantage: Advantage,
    learners: Mapping[str, Learner],
    settings: ValueLoss | None = None,
) -> CriticTrainer:
    """Of a critic that reads bytes."""
    tokenizer = byte_tokenizer()
    return CriticTrainer(
        critic=critic,
        learners=learners,
        tokenize=lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
        advantage=advantage,
        settings=settings or ValueLoss(),
        max_length=4096,
    )


def head_of(seed: int, size: float = 0.3) -> ValueHead:
    """One that already says something, so that values differ."""
    head = ValueHead(32)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head.linear.weight.normal_(0.0, size)
    return head


def value_network(seed: int, *, size: float = 0.3, dtype: torch.dtype = torch.float64) -> Network:
    return Network(Base(tiny_model("llama", seed=seed, dtype=dtype)), head=head_of(seed, size))


def learner_of(name: str, network: Network, *, rate: float = 1e-3, **settings: Any) -> LocalLearner:
    return LocalLearner(
        name, network, OptimizerSettings(learning_rate=rate, **settings), token_budget=4096
    )


def updater_of(
    algorithm: Algorithm,
    team: Any,
    *,
    rate: float = 1e-3,
    value_loss: ValueLoss | None = None,
    head: float = 0.3,
    **settings: Any,
) -> Updater:
    """Every agent on a model of its own, every reader of the critic too."""
    parts = algorithm.parts()
    trainer = None
    if parts.critic is not None:
        readers = parts.critic.readers(tuple(team.voices))
        learners = {
            reader: learner_of(reader, value_network(20 + number, size=head), rate=rate)
            for number, reader in enumerate(readers)
        }
        chosen = value_loss or parts.value_loss
        trainer = new_trainer(parts.critic, parts.advantage, learners, chosen)
    actors = {agent: learner_of(agent, team.network(agent), rate=rate) for agent in team.voices}
    return new_updater(parts, actors, critic=trainer, **settings)
