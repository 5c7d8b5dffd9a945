"""The trained policies and the rows that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from colearn.contract.types import Tree
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.packed_rows import actor_rows
from colearn.training.learners.reader import Reader, Rows, Trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Actors(Reader):
    """The trained policies. Their input is the agents' histories as token ids. `critic` is set if
    value heads on the models estimate its values."""

    kind: ClassVar[Literal["actor"]] = "actor"
    specs: Mapping[str, AgentSpec]
    """Specs by player; an episode's cast maps agents to players."""

    def rows(self, trees: Trees, token_budget: int, done: float) -> Rows:
        """Returns the rows of each model. `done` is the fraction of the budget that had been used
        when the trees were sampled."""
        rows: Rows = {name: {} for name in self.learners}
        value = None if self.critic is None else self.critic.on_actor
        for number, tree in enumerate(trees):
            for agent in tree.agents:
                spec = self._spec_of(tree, agent)
                if spec is None or spec.model is None:
                    continue
                agent_rows = actor_rows(
                    tree,
                    agent,
                    number=number,
                    window=spec.window,
                    temperature=spec.temperature_at(done),
                    budget=None if value else token_budget,
                    value=value,
                )
                # an agent that never acted has a row without a token, which no model can read
                of_tree = rows[spec.model].setdefault(number, [])
                of_tree += [row for row in agent_rows if row.spans or row.marks]
        return rows

    def model_of(self, tree: Tree[Any], reader: str) -> str | None:
        """The trained model in an agent's seat; None for other players."""
        spec = self._spec_of(tree, reader)
        return None if spec is None else spec.model

    def learns(self, tree: Tree[Any], agent: str) -> bool:
        """Whether a trained model plays an agent's seat."""
        return self._spec_of(tree, agent) is not None

    def _spec_of(self, tree: Tree[Any], agent: str) -> AgentSpec | None:
        spec = self.specs.get(tree.player(agent))
        return spec if spec is not None and spec.model in self.learners else None
