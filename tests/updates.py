"""An updater, a critic's trainer and its network, as tests of an update set them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tiny import byte_tokenizer, tiny_model

from colearn.agents import Voice
from colearn.contract import Advantage, Critic, Learner, Parts, ValueLoss
from colearn.experiment.update.critics import CriticTrainer
from colearn.experiment.update.updater import Updater
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
