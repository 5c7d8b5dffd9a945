"""Adapters of one base that are trained in joint passes, against one pass for each adapter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import pytest
import torch
from local_learners import relative
from tiny import Notes, add_adapter, cast, play
from torch import Tensor
from updates import head_of, new_critics, new_updater

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import LoRASettings, OptimizerSettings
from colearn.contract import Minibatch
from colearn.contract.algorithm import ValueLoss
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.methods.advantage.gae import GAE
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.network import Network
from colearn.rollout.shapes import KaryTree
from colearn.training.learners.batch import joint_micro_batches, micro_batches
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.reader import rows_of
from colearn.training.learners.torch_optimizer import TorchOptimizer
from colearn.training.update.updater import Updater

PLAIN: dict[str, Any] = {"advantage": GAE(), "loss": PolicyGradient(entropy=0.01)}
TREES = MAGRPO(rollout=KaryTree(k=2))
CHAINS = CoLLMCC(**PLAIN, value_loss=ValueLoss())
FROZEN = CoLLMCC(**PLAIN, value_loss=ValueLoss(frozen_targets=True))
ADAPTERS = {"ada": "actor_ada", "ben": "actor_ben", "team": "critic_team"}


@dataclass
class Run:
    """A team whose agents, and whose critic if there is one, are adapters of one base."""

    updater: Updater
    learners: dict[str, NetworkLearner]
    trees: Any


def run_of(
    algorithm: Any,
    *,
    joint: bool,
    budget: int = 4096,
    checkpointing: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Run:
    """Ben acts in the second of three turns only. Chains may end before it."""
    parts = algorithm.parts()
    ends = parts.critic is not None
    team = cast(lora={name: ADAPTERS[name] for name in ("ada", "ben")}, temperature=1.5)
    base = team.bases["ada"]
    trees = play(Notes(items=5, sequential=True, ends=ends), team, parts.rollout)
    heads = {"team": head_of(3)} if parts.critic is not None else {}
    if heads:
        add_adapter(base, ADAPTERS["team"])
    base.causal.to(dtype)
    learners = {}
    for name in ("ada", "ben", *heads):
        network = Network(base, ADAPTERS[name], heads.get(name), checkpointing=checkpointing)
        optimizer = TorchOptimizer(name, network, OptimizerSettings(learning_rate=1e-4))
        entropy = name != "team" and parts.loss.needs_entropy
        learners[name] = NetworkLearner(
            name, network, optimizer, token_budget=budget, entropy=entropy, joint=joint
        )
    actors = {name: learners[name] for name in ("ada", "ben")}
    critic = new_critics(parts.critic, {"team": learners["team"]}) if heads else None
    specs = {name: replace(voice, model=name) for name, voice in team.voices.items()}
    updater = new_updater(
        parts, actors, critic=critic, specs=specs, minibatch=4, epochs=2, token_budget=budget
    )
    return Run(updater, learners, trees)


def updated(run: Run) -> dict[str, dict[str, Tensor]]:
    """The gradients of the steps of an update, by learner."""
    gradients: dict[str, dict[str, Tensor]] = {name: {} for name in run.learners}
    for name, learner in run.learners.items():

        def step(done: float, learner: Any = learner, held: Any = gradients[name]) -> Any:
            for key, weight in learner.parameters.items():
                if weight.grad is not None:
                    held[f"{learner.steps}.{key}"] = weight.grad.clone()
            return NetworkLearner.step(learner, done)

        learner.step = step  # type: ignore[method-assign]
    run.updater.update(run.trees, 0)
    return gradients


@pytest.mark.parametrize(
    ("algorithm", "budget", "checkpointing", "dtype"),
    [
        (TREES, 4096, False, torch.float64),
        (TREES, 150, True, torch.float32),
        (CHAINS, 4096, True, torch.float64),
        (CHAINS, 150, False, torch.float32),
        (FROZEN, 4096, False, torch.float64),
    ],
    ids=["trees", "cut trees", "chains", "micro-batches of chains", "actors with the critic"],
)
def test_joint_passes_have_the_gradients_and_weights_of_separate_ones(
    algorithm: Any, budget: int, checkpointing: bool, dtype: torch.dtype, monkeypatch: Any
) -> None:
    """All gradients of four steps, and the weights after them. Gradients in float32 are sums of
    another order, as with another token budget. Small passes are lean here as large ones are."""
    monkeypatch.setattr("colearn.models.base.LARGE", 0)
    joint, separate = (
        run_of(algorithm, joint=joint, budget=budget, checkpointing=checkpointing, dtype=dtype)
        for joint in (True, False)
    )
    if algorithm is not TREES or budget < 4096:
        rows = joint.updater.actors.rows(joint.trees, budget, 0.0).values()
        assert len({len(rows_of(of_model, of_model)) for of_model in rows}) == 2, "unequal numbers"
    found, expected = updated(joint), updated(separate)
    for name, learner in separate.learners.items():
        assert learner.steps >= 4
        assert relative(expected[name], found[name]) < (3e-6 if dtype == torch.float32 else 1e-12)
        weights = joint.learners[name].parameters
        for key, weight in learner.parameters.items():
            torch.testing.assert_close(weights[key], weight, rtol=0.0, atol=1e-6)


def rows_with_gradient(base: Any) -> list[int]:
    """A list that receives the number of rows of every pass of the base that has a gradient."""
    sizes: list[int] = []

    def note(_: Any, __: Any, named: Any) -> None:
        if torch.is_grad_enabled():
            sizes.append(len(named["input_ids"]))

    base.causal.get_decoder().register_forward_pre_hook(note, with_kwargs=True)
    return sizes


@pytest.mark.parametrize(
    ("algorithm", "joint", "passes"),
    [(TREES, False, 2), (TREES, True, 1), (CHAINS, False, 3), (CHAINS, True, 2), (FROZEN, True, 1)],
)
def test_adapters_of_one_base_share_the_pass_of_a_minibatch(
    algorithm: Any, joint: bool, passes: int
) -> None:
    """Two actors, and a critic whose values the actors' advantages need before, unless frozen."""
    run = run_of(algorithm, joint=joint)
    sizes = rows_with_gradient(run.learners["ada"].network.base)
    run.updater.update(run.trees, 0)
    assert len(sizes) == passes * run.learners["ada"].steps


def test_equal_passages_of_two_models_count_twice_in_the_budget() -> None:
    row = Row(tokens=(1, 2, 3), pieces=(Piece(0, 3, -1, 0, 0),), spans=(ActionTokens(1, 1, 3, 0),))
    assert len(micro_batches([row, row], 3)) == 1
    assert len(joint_micro_batches([[row], [row]], 3)) == 2


@pytest.mark.parametrize("wrong", ["ada", "ben"])
def test_a_loss_that_is_not_finite_names_its_model_and_leaves_no_gradient(wrong: str) -> None:
    run = run_of(TREES, joint=True)
    rows = run.updater.actors.rows(run.trees, 4096, 0.0)

    def minibatch(name: str) -> Minibatch:
        def objective(outputs: Any, batch: Any) -> tuple[Tensor, dict[str, float]]:
            return outputs.logprobs.sum() * (nan if name == wrong else 1.0), {}

        return Minibatch(run.learners[name], rows_of(rows[name], [0]), objective)

    with pytest.raises(FloatingPointError, match=f"^{wrong}: the loss of update 1, micro-batch 1"):
        run.learners["ada"].accumulate_joint([minibatch("ada"), minibatch("ben")])
    weights = [w for learner in run.learners.values() for w in learner.parameters.values()]
    assert all(weight.grad is None for weight in weights)


@pytest.mark.parametrize(("targets", "joined"), [(["q_proj"], True), (["lm_head"], False)])
def test_a_base_with_an_adapter_on_its_head_has_no_joint_passes(targets: Any, joined: bool) -> None:
    base = cast().bases["ada"]
    base.causal.requires_grad_(False)
    base.add_adapter("actor_ada", LoRASettings(rank=4, alpha=8.0, targets=targets))
    network = Network(base, "actor_ada")
    optimizer = TorchOptimizer("ada", network, OptimizerSettings(learning_rate=1e-3))
    learner = NetworkLearner("ada", network, optimizer, token_budget=64, joint=True)
    assert (learner.pass_group is not None) == joined
