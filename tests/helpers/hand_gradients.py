"""Policy gradients through plain transformers, one unpacked history for each action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from colearn.contract.types import Tree

Advantages = Sequence[Sequence[Mapping[str, float]]]
"""By tree and node, those of the agents whose action led to the node."""


def reinforce(
    model: Any,
    trees: Sequence[Tree[Any]],
    agent: str,
    advantages: Advantages,
    *,
    temperature: float = 1.0,
) -> dict[str, torch.Tensor]:
    """Gradients of -(1/S) sum of A log pi(a|h) over the S actions of `agent` that have an
    advantage."""
    loss, count = torch.zeros((), dtype=torch.float64), 0
    for tree, by_node in zip(trees, advantages, strict=True):
        for node in tree.nodes:
            if agent not in by_node[node.index]:
                continue
            assert node.parent is not None, "an action leads from somewhere"
            history = list(tree.history(node.parent, agent).tokens)
            action = torch.tensor(node.actions[agent].tokens)
            logits = model(input_ids=torch.tensor([[*history, *action]])).logits[0]
            scores = (logits / temperature).log_softmax(-1)[len(history) - 1 : -1]
            logprob = scores.gather(-1, action[:, None]).sum()
            loss, count = loss - by_node[node.index][agent] * logprob, count + 1
    (loss / count).backward()
    return {f"model.{name}": p.grad.clone() for name, p in model.named_parameters()}
