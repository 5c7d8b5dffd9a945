"""Two adapters on one base against peft alone: a plain model for each adapter."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
import torch
from credited import credited
from local_learners import local_learner
from peft import LoraConfig, get_peft_model
from tiny import ARCHITECTURES, Notes, add_adapter, branch_parts, cast, play, tiny_model

from colearn.config import LoRASettings, OptimizerSettings
from colearn.contract.algorithm import ValueLoss
from colearn.contract.types import Action
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.base import Base
from colearn.rollout.shapes import KaryTree
from colearn.training.update.objective import ActorObjective

CLOSE = 1e-5
LORA = {"ada": "one", "ben": "two"}
NORM = 0.1
"""The gradients of these tests are clipped by it."""
SETTINGS = OptimizerSettings(learning_rate=1e-3, weight_decay=0.01, max_grad_norm=NORM)
STEPS = 2
ROUNDING = 1e-6
"""Of a gradient here, generously: the largest entries exceed 0.01."""


def plain(kind, base, adapter):
    """peft on its own base weights with one adapter, which starts from the same numbers."""
    settings = LoraConfig(r=4, lora_alpha=8.0, target_modules="all-linear")
    model = get_peft_model(tiny_model(kind), settings, adapter_name=adapter).eval()
    weights = adapter_weights(model)
    assert weights.keys() == base.adapter_parameters(adapter).keys()
    with torch.no_grad():
        for name, parameter in base.adapter_parameters(adapter).items():
            weights[name].copy_(parameter)
    return model


def adapter_weights(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@pytest.fixture(params=["qwen3", "gemma3"])
def stage(request):
    team = cast(kind=request.param, lora=LORA, temperature=0.8)
    trees = play(Notes(ends=True, horizon=2, items=3), team, KaryTree(2))
    base = team.bases["ada"]
    return team, trees, {agent: plain(request.param, base, LORA[agent]) for agent in LORA}


def learner_of(team, trees, agent):
    """A learner with what it trains on."""
    advantages = GroupMean()(credited(trees))
    rows = [
        replace(row, advantages=tuple(advantages_by_node[span.node][agent] for span in row.spans))
        for tree, advantages_by_node in zip(trees, advantages, strict=True)
        for row in team.rows(tree, agent)
    ]
    learner = local_learner(agent, team.network(agent), SETTINGS, token_budget=300)
    return learner, rows, ActorObjective.of(PolicyGradient(), ValueLoss(), rows)


def peft_loss(model, trees, agent, temperature):
    """-A log pi by a call of the model for each action, mean over actions."""
    total, count = 0.0, 0
    for tree, advantages in zip(trees, GroupMean()(credited(trees)), strict=True):
        for node in tree.nodes[1:]:
            before = [part for _, part in branch_parts(tree, node.parent, agent)]
            seen = [token for part in before for token in part.tokens]
            action = node.actions[agent].tokens
            assert not isinstance(before[-1], Action)
            logits = model(input_ids=torch.tensor([[*seen, *action]])).logits[0, len(seen) - 1 : -1]
            scores = (logits / temperature).log_softmax(-1)
            logprob = scores.gather(-1, torch.tensor(action)[:, None]).sum()
            total, count = total - advantages[node.index][agent] * logprob, count + 1
    return total / count


def gap(one, other):
    assert one.keys() == other.keys() and one
    return max(float((one[name] - other[name]).detach().abs().max()) for name in one)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_the_rows_of_a_mixed_batch_have_the_logits_of_their_own_peft_model(kind):
    base = Base(tiny_model(kind).requires_grad_(False))
    for adapter in LORA.values():
        add_adapter(base, adapter)
    ids = torch.randint(0, 200, (5, 30), generator=torch.Generator().manual_seed(0))
    mixed = ["two", "one", None, "two", "one"]
    models = {name: plain(kind, base, name) for name in LORA.values()} | {None: tiny_model(kind)}
    with torch.no_grad():
        with base.using(mixed):
            logits = base.logits(base.hidden(ids))
        for number, adapter in enumerate(mixed):
            expected = models[adapter](input_ids=ids[number : number + 1]).logits[0]
            assert float((logits[number] - expected).abs().max()) < CLOSE


def test_each_adapters_gradient_is_that_of_its_own_peft_model(stage):
    team, trees, models = stage
    for agent, model in models.items():
        learner, rows, objective = learner_of(team, trees, agent)
        learner.accumulate(rows, objective)
        peft_loss(model, trees, agent, 0.8).backward()
        ours = {name.removeprefix("adapter."): p.grad for name, p in learner.parameters.items()}
        theirs = {name: p.grad for name, p in adapter_weights(model).items()}
        assert max(float(grad.abs().max()) for grad in theirs.values()) > 1e-2
        assert gap(ours, theirs) < CLOSE


def test_after_steps_of_adamw_in_turn_each_adapter_is_that_of_its_own_peft_model(stage):
    """AdamW's first step divides an entry's gradient by its own size, so entries whose gradient
    is hardly more than rounding say nothing: they are left out, and they are few."""
    team, trees, models = stage
    learners = {agent: learner_of(team, trees, agent) for agent in models}
    optimizers = {
        agent: torch.optim.AdamW(
            adapter_weights(model).values(), lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01
        )
        for agent, model in models.items()
    }
    clear = {}
    for _ in range(STEPS):
        for learner, rows, objective in learners.values():
            learner.accumulate(rows, objective)
            assert learner.step(0.0)["grad_norm"] > NORM
        for agent, model in models.items():
            optimizers[agent].zero_grad()
            peft_loss(model, trees, agent, 0.8).backward()
            weights = adapter_weights(model)
            first = {name: p.grad.abs() > ROUNDING for name, p in weights.items()}
            clear.setdefault(agent, first)
            torch.nn.utils.clip_grad_norm_(weights.values(), NORM)
            optimizers[agent].step()
    for agent, model in models.items():
        ours = team.bases[agent].adapter_parameters(LORA[agent])
        kept = torch.cat([mask.flatten() for mask in clear[agent].values()])
        assert float(kept.float().mean()) > 0.99
        differences = [
            float((ours[name] - weight)[clear[agent][name]].detach().abs().max())
            for name, weight in adapter_weights(model).items()
        ]
        assert max(differences) < CLOSE


def test_an_adapter_brings_no_warning_of_names_that_are_going_away() -> None:
    base = Base(tiny_model())
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        for name in ("ada", "ben"):
            base.add_adapter(name, LoRASettings(rank=2, alpha=4.0))
