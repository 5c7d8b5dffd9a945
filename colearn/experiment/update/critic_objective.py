"""What a critic's learner minimises, as a value that needs no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from colearn.contract import Advantage, AgentValues, Critic, TokenValues, ValueLoss
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.loss.value import value_loss
from colearn.types import Action, Credited, Node, Observation, Tree


@dataclass(frozen=True, slots=True)
class CriticObjective:
    """The objective of one minibatch of one value model.

    Targets come from the very values that the forward pass has just read, detached (Eq. 3, 5),
    except for rows that carry targets already. A row's key is its reader's place times the number
    of episodes, plus the number of its episode.
    """

    critic: Critic
    advantage: Advantage
    settings: ValueLoss
    readers: tuple[str, ...]
    """Of this value model."""
    episodes: tuple[Credited[None], ...]
    """The minibatch's, `bare`; none where every row carries its targets."""
    old: tuple[AgentValues, ...] | None
    """Values at rollout, where the value loss clips by them."""
    total: int
    """Values in the minibatch."""

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
            agents = self.critic.readers(tree.agents)[reader]
            basis = by_agent(self.critic, tree, reader, row, part.tolist())
            aims = self.advantage.targets([self.episodes[number]], [basis])[0]
            targets += at_marks(aims, row, agents)
            if self.old is not None:
                olds += at_marks(self.old[number], row, agents)
        return value_loss(
            outputs.values,
            outputs.values.new_tensor(targets),
            outputs.values.new_tensor(olds) if olds else None,
            self.settings,
            self.total,
        )


def bare(tree: Tree[Any]) -> Tree[None]:
    """Who acted where and how many tokens were said, without texts, ids, states and the item."""
    return Tree(
        item=None,
        episode=tree.episode,
        member=tree.member,
        agents=tree.agents,
        cast=tree.cast,
        nodes=tuple(
            Node(
                index=node.index,
                parent=node.parent,
                path=node.path,
                state=None,
                observations={
                    agent: Observation("", (), seen.fresh)
                    for agent, seen in node.observations.items()
                },
                actions={
                    agent: Action("", (0,) * len(action.tokens))
                    for agent, action in node.actions.items()
                },
                done=node.done,
            )
            for node in tree.nodes
        ),
    )


def by_agent(
    critic: Critic, tree: Tree[Any], reader: str, row: Row, values: Sequence[float]
) -> AgentValues:
    """What was read at a row's marks, by agent and node."""
    read = list(zip(row.marks, values, strict=True))
    at = {mark.node: value for mark, value in read if mark.inside is None}
    if critic.value != "token":
        return values_by_agent(tree, critic, reader, at)
    inside: list[list[float]] = [[] for _ in tree.nodes]
    for mark, value in read:
        if mark.inside is not None:
            inside[mark.node].append(value)
    seen = tuple(at.get(node.index) for node in tree.nodes)
    own = TokenValues(seen, tuple(map(tuple, inside)))
    return dict.fromkeys(critic.readers(tree.agents)[reader], own)


def values_by_agent(
    tree: Tree[Any], critic: Critic, reader: str, at: Mapping[int, float]
) -> AgentValues:
    """A reader's values as the values of the agents it stands for, at every node it reads.

    A central critic gives V(h_t) to agents that do not act at turn t, too: its bootstrap is the
    next joint history, whoever acts there (Eq. 4).
    """
    series = tuple(at.get(node.index) for node in tree.nodes)
    return dict.fromkeys(critic.readers(tree.agents)[reader], series)


def at_marks(values: AgentValues, row: Row, agents: Sequence[str]) -> list[float]:
    """One number for each mark: that of the first agent who has one there."""
    found = []
    for mark in row.marks:
        if mark.inside is None:
            found.append(next(v for a in agents if (v := values[a][mark.node]) is not None))
        else:
            own = values[agents[0]]
            assert isinstance(own, TokenValues), "marks inside of actions are of tokens"
            found.append(own.inside[mark.node][mark.inside])
    return found
