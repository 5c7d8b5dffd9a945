"""Value models that are separate from the actors, and the rows that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, ClassVar, Literal

from colearn.config import ResolvedRun
from colearn.contract import (
    Advantage,
    AgentValues,
    Critic,
    Learner,
    NetworkKey,
    Tokenize,
    ValueLoss,
)
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Row
from colearn.models.load import read_config
from colearn.types import Tree
from colearn.value_model.item_means import Offsets, baselined

from .objective import CriticObjective
from .reader import Reader, Rows, Trees

Learns = Callable[[Tree[Any], str], bool]
"""Whether a trained model plays an agent's seat in a tree."""


def anybody(tree: Tree[Any], agent: str) -> bool:
    """Returns True: every seat counts as trained."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Critics(Reader):
    """Value models that are separate from the actors. Their input is text in the critic's
    tokenizer. A critic's readers (`Critic.readers`) may share one value model, just as agents may
    share a model."""

    kind: ClassVar[Literal["critic"]] = "critic"
    critic: Critic
    tokenize: Tokenize
    max_length: int
    value_model: Callable[[str], str] = str
    """Maps a reader to its value model."""

    @classmethod
    def of(
        cls, run: ResolvedRun, learners: Mapping[NetworkKey, Learner], tokenize: Tokenize
    ) -> Critics:
        """The value models of a run that has some; `learners` may include those of actors."""
        settings, critic = run.config.critic, run.parts.critic
        assert critic is not None and settings is not None and settings.path is not None
        return cls(
            critic=critic,
            learners={
                key.model: learner for key, learner in learners.items() if key.kind == "critic"
            },
            tokenize=tokenize,
            max_length=settings.longest_stream(read_config(settings.path, "critic.path")),
            value_model=run.value_models.__getitem__,
        )

    def model_of(self, tree: Tree[Any], reader: str) -> str:
        return self.value_model(reader)

    def rows(
        self,
        trees: Trees,
        learns: Learns = anybody,
        baselines: Offsets | None = None,
        *,
        training: bool = True,
    ) -> Rows:
        """Returns the rows of each value model. Includes every reader that has at least one agent
        for which `learns` is true, since opponents and programs have no values. `baselines` are
        added to the network's values. If `training` is False, returns the rows from which
        values are read. These rows may differ from the training rows (`Critic.read_once`)."""
        make = self.critic.training_row if training else self.critic.row
        rows: Rows = {model: {} for model in self.learners}
        for number, tree in enumerate(trees):
            for reader, agents in self.critic.readers(tree.agents).items():
                trained = tuple(agent for agent in agents if learns(tree, agent))
                if trained:
                    with calling_part("algorithm.critic", self.critic):
                        row = make(tree, reader, self.tokenize, limit=self.max_length)
                    if row.marks:
                        row = replace(row, tree=number, reader=reader, agents=trained)
                        if baselines is not None:
                            row = baselined(row, self.critic, tree, trained, baselines[number])
                        rows[self.value_model(reader)].setdefault(number, []).append(row)
        return rows

    def values(
        self, trees: Trees, learns: Learns = anybody, baselines: Offsets | None = None
    ) -> list[AgentValues]:
        """Computes the values of every tree with the current weights, without gradient. The
        arguments are those of `rows`."""
        rows = self.rows(trees, learns, baselines, training=False)
        return list(self.read(trees, rows, range(len(trees))).values())

    def objective(
        self,
        advantage: Advantage,
        settings: ValueLoss,
        rows: Sequence[Row],
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> CriticObjective | None:
        """Returns the objective of one value model in a minibatch, whose rows are `rows`; None if
        none of its targets is scored, since zero gradients would still apply weight decay and
        momentum. `episodes` maps tree numbers to credited trees; None if the rows already have
        targets."""
        total = self._scored(advantage, rows, episodes)
        if not total:
            return None
        return CriticObjective(settings, total, self.critic, advantage, episodes)

    def _scored(
        self,
        advantage: Advantage,
        rows: Sequence[Row],
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> int:
        """Number of values with a scored target; this does not depend on the values."""
        count = 0
        for row in rows:
            targets: Sequence[float] = row.targets or (0.0,) * len(row.marks)
            if episodes is not None and _has_unscored(episodes[row.tree]):
                episode = episodes[row.tree]
                values = self.critic.values(episode, row.reader, row, targets)
                (aims,) = advantage.targets([episode], [values])
                targets = self.critic.numbers(episode, row.reader, row, aims)
            count += sum(not isnan(target) for target in targets)
        return count


def _has_unscored(episode: Tree[Any]) -> bool:
    return any(node.truncated for node in episode.nodes) or any(
        isnan(reward) for rewards in episode.rewards for reward in rewards.values()
    )
