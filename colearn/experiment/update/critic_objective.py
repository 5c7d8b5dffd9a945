"""The objective of a critic's learner, as a picklable value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from colearn.contract import Advantage, AgentValues, Critic, ValueLoss
from colearn.contract.rows import Outputs, RowBatch
from colearn.loss.value import value_loss
from colearn.types import Action, Credited, Node, Observation, Tree


@dataclass(frozen=True, slots=True)
class CriticObjective:
    """The objective of one minibatch of one value model.

    Targets are computed from the values of this forward pass, detached (Eq. 3, 5), except for rows
    that already have targets. A row's key is its reader's index times the number of episodes, plus
    the number of its episode.
    """

    critic: Critic
    advantage: Advantage
    settings: ValueLoss
    readers: tuple[str, ...]
    """Readers of this value model."""
    episodes: tuple[Credited[None], ...]
    """The minibatch's episodes with `bare` trees; empty if every row has targets."""
    old: tuple[AgentValues, ...] | None
    """Values at rollout, if the value loss clips around them."""
    total: int
    """Number of values in the minibatch."""

    def __call__(self, outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        parts = outputs.values.detach().cpu().split([len(row.marks) for row in batch.rows])
        targets: list[float] = []
        olds: list[float] = []
        for row, part in zip(batch.rows, parts, strict=True):
            if row.targets:
                targets += row.targets
                olds += row.old_values
                continue
            place, number = divmod(row.key, len(self.episodes))
            tree, reader = self.episodes[number].tree, self.readers[place]
            basis = self.critic.values(tree, reader, row, part.tolist())
            (aims,) = self.advantage.targets([self.episodes[number]], [basis])
            targets += self.critic.numbers(tree, reader, row, aims)
            if self.old is not None:
                olds += self.critic.numbers(tree, reader, row, self.old[number])
        return value_loss(
            outputs.values,
            outputs.values.new_tensor(targets),
            outputs.values.new_tensor(olds) if olds else None,
            self.settings,
            self.total,
        )


def bare(tree: Tree[Any]) -> Tree[None]:
    """A tree's topology and token counts, without texts, ids, states and the item."""
    return replace(tree, item=None, nodes=tuple(map(_bare_node, tree.nodes)))


def _bare_node(node: Node[Any]) -> Node[None]:
    return replace(
        node,
        state=None,
        global_info="",
        privileged_info="",
        metrics={},
        observations={
            agent: Observation("", (), seen.fresh) for agent, seen in node.observations.items()
        },
        actions={agent: _bare_action(action) for agent, action in node.actions.items()},
        alternatives={
            agent: tuple(map(_bare_action, others)) for agent, others in node.alternatives.items()
        },
    )


def _bare_action(action: Action) -> Action:
    return Action("", (0,) * len(action.tokens))
