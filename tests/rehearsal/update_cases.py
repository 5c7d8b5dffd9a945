"""Updates, and what a micro-batch costs on a device in name only."""

from __future__ import annotations

from typing import Any

from colearn.config import OptimizerSettings
from colearn.contract import Minibatch
from colearn.contract.rows import Row
from colearn.engines.transformers import TransformersEngine
from colearn.models.network import Network, ValueHead
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.batch import micro_batches
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.torch_optimizer import TorchOptimizer
from tests.helpers.local_learners import local_learner
from tests.helpers.one_turn_trees import one_turn_trees, prompts, rows_with_actions

from . import costs
from .decoding_cases import DEVICE, request, team


def rows_of(generator: TransformersEngine, forks: int, items: int = 3, **packing: Any) -> list[Row]:
    """Rows of one turn, `forks` answers each, to prompts of unequal length."""
    asked = prompts(24 + 3 * number for number in range(items))
    requests = [request("ada", generator.roles["ada"], prompt, forks) for prompt in asked]
    trees = one_turn_trees("ada", asked, generator.generate(requests))
    return rows_with_actions(trees, "ada", **packing)


def per_micro_batch(
    adapters: int, compute: str, forks: int, values: bool = False, checkpointing: bool = False
) -> dict[str, Any]:
    """Costs of an update by rows of `forks` branches, by place: of its passes, for each
    micro-batch, and of its step."""
    base, specs = team(adapters, compute, layers=4, max_tokens=12)
    base.to(DEVICE)
    value = "observation" if values else None
    rows = rows_of(TransformersEngine(base, specs), forks, value=value)
    learner = learner_of(base, specs["ada"], values, checkpointing)

    def objective(outputs: Any, batch: Any) -> Any:
        loss = -1e-3 * outputs.logprobs.sum()
        return (loss + outputs.values.sum() if values else loss), {}

    with costs.counted() as passes:
        learner.accumulate(rows, objective)
    with costs.counted() as step:
        learner.step(0.0)
    count = len(list(micro_batches(rows, learner.token_budget)))
    return {
        "passes": {k: {w: n / count for w, n in by.items()} for k, by in _plain(passes).items()},
        "step": _plain(step),
        "micro-batches": count,
    }


def per_minibatch_of_two(joint: bool, forks: int) -> dict[str, Any]:
    """Costs of the passes of two agents' minibatches, by place: in joint passes, or in separate
    ones."""
    base, specs = team(2, "bfloat16", layers=4, max_tokens=12)
    base.to(DEVICE)
    rows = rows_of(TransformersEngine(base, specs), forks)
    minibatches = []
    for name, spec in specs.items():
        network = Network(base, spec.adapter)
        optimizer = TorchOptimizer(name, network, OptimizerSettings(learning_rate=1e-3))
        learner = NetworkLearner(name, network, optimizer, token_budget=4096, joint=joint)
        minibatches.append(Minibatch(learner, rows, _negative_sum))
    with costs.counted() as passes:
        if joint:
            minibatches[0].learner.accumulate_joint(minibatches)
        else:
            for learner, of_learner, objective in minibatches:
                learner.accumulate(of_learner, objective)
    return _plain(passes)


def _negative_sum(outputs: Any, batch: Any) -> Any:
    return -1e-3 * outputs.logprobs.sum(), {}


def learner_of(base: Any, spec: AgentSpec, values: bool, checkpointing: bool) -> NetworkLearner:
    for name, parameter in base.model.named_parameters():
        mine = spec.adapter is None or (".lora_" in name and f".{spec.adapter}." in name)
        parameter.requires_grad_(mine)
    head = ValueHead(base.config.hidden_size).to(base.device) if values else None
    network = Network(base, spec.adapter, head, checkpointing=checkpointing)
    return local_learner("actor", network, OptimizerSettings(learning_rate=1e-3), token_budget=4096)


def _plain(counts: costs.Costs) -> dict[str, dict[str, float]]:
    return {kind: dict(by) for kind, by in counts.minus(costs.Costs()).items()}
