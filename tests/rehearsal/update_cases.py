"""Updates on a device in name only: what a micro-batch costs."""

from __future__ import annotations

from typing import Any

from colearn.agents import AgentSpec
from colearn.config import OptimizerSettings
from colearn.contract.rows import Row
from colearn.generate.transformers import TransformersEngine
from colearn.learn.local import LocalLearner
from colearn.learn.packed_rows import actor_rows
from colearn.models.network import Network
from colearn.models.value_head import ValueHead
from colearn.types import Node, Observation, Tree

from . import costs
from .decoding_cases import DEVICE, request, team


def trees(generator: TransformersEngine, forks: int, items: int = 3) -> list[Tree[Any]]:
    """Trees of one turn, `forks` answers each, to prompts of unequal length."""
    prompts = [
        tuple((place * 31 + number * 7) % 250 for place in range(24 + 3 * number))
        for number in range(items)
    ]
    asked = [request("ada", generator.roles["ada"], prompt, forks) for prompt in prompts]
    made = []
    for number, (prompt, drawn) in enumerate(zip(prompts, generator.generate(asked), strict=True)):
        seen = {"ada": Observation(text="", tokens=prompt)}
        root: Node[Any] = Node(index=0, parent=None, path=(), state=None, observations=seen)
        nodes = [
            Node(
                index=1 + place,
                parent=0,
                path=(place,),
                state=None,
                observations={},
                actions={"ada": one.action},
            )
            for place, one in enumerate(drawn)
        ]
        made.append(Tree(item=None, episode=number, agents=("ada",), nodes=(root, *nodes)))
    return made


def rows_of(made: list[Tree[Any]], **packing: Any) -> list[list[Row]]:
    return [
        [row for row in actor_rows(tree, "ada", number=number, **packing) if row.spans]
        for number, tree in enumerate(made)
    ]


def per_micro_batch(
    adapters: int, compute: str, forks: int, values: bool = False, checkpointing: bool = False
) -> dict[str, Any]:
    """Costs of an update by rows of `forks` branches, by place: of its passes, for each
    micro-batch, and of its step."""
    base, specs = team(adapters, compute, layers=4, max_tokens=12)
    base.to(DEVICE)
    groups = rows_of(
        trees(TransformersEngine(base, specs), forks), value="observation" if values else None
    )
    learner = _learner(base, specs["ada"], values, checkpointing)

    def objective(outputs: Any, batch: Any) -> Any:
        loss = -1e-3 * outputs.logprobs.sum()
        return (loss + outputs.values.sum() if values else loss), {}

    prepared = learner.prepare(groups)
    with costs.counted() as passes:
        learner.accumulate(prepared, objective)
    with costs.counted() as step:
        learner.step(0.0)
    count = len(prepared.micros)
    return {
        "passes": {k: {w: n / count for w, n in by.items()} for k, by in _plain(passes).items()},
        "step": _plain(step),
        "micro-batches": count,
    }


def _learner(base: Any, spec: AgentSpec, values: bool, checkpointing: bool) -> LocalLearner:
    for name, parameter in base.model.named_parameters():
        mine = spec.adapter is None or (".lora_" in name and f".{spec.adapter}." in name)
        parameter.requires_grad_(mine)
    head = ValueHead(base.config.hidden_size).to(base.device) if values else None
    network = Network(base, spec.adapter, head, checkpointing=checkpointing)
    return LocalLearner("actor", network, OptimizerSettings(learning_rate=1e-3), token_budget=4096)


def _plain(counts: costs.Costs) -> dict[str, dict[str, float]]:
    return {kind: dict(by) for kind, by in counts.minus(costs.Costs()).items()}
