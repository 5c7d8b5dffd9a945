"""Training rows of an iteration: tokens, log-probabilities, advantages, value targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from colearn.agents import Voice
from colearn.contract import (
    AgentValues,
    Episodes,
    Follower,
    Learner,
    NetworkKey,
    Parts,
    Prepared,
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.rows import Outputs, Row
from colearn.learn.row import actor_rows
from colearn.types import Tree

from .action_weights import equal_groups
from .diagnostics import advantage_metrics
from .objective import with_logprobs, with_targets

Trees = Sequence[Tree[Any]]


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows with advantages and targets, by actor and episode number, and advantage statistics."""

    rows: Mapping[str, Mapping[int, Sequence[Row]]]
    metrics: Mapping[str, float]
    last: dict[str, tuple[Sequence[int], Prepared]] = field(default_factory=dict)

    def prepared(self, name: str, learner: Learner, numbers: Sequence[int]) -> Prepared:
        """An actor's rows of these episodes, cut by its learner; cached for the last episodes."""
        if name not in self.last or self.last[name][0] != numbers:
            by_episode = self.rows[name]
            groups = [[row] for n in numbers for row in by_episode.get(n, ())]
            self.last[name] = numbers, learner.prepare(groups)
        return self.last[name][1]


@dataclass(frozen=True, slots=True)
class ActorRows:
    """Rows of every trained agent, by tree number and agent."""

    trees: Trees
    parts: Parts
    voices: Mapping[str, Voice]
    actors: Mapping[str, Learner]
    shared_head: bool
    rows: dict[tuple[int, str], list[Row]] = field(default_factory=dict)

    def build(self, token_budget: int, done: float) -> None:
        """Build the rows of trees sampled after the fraction `done` of the budget."""
        head = self.parts.critic.on_actor if self.parts.critic and self.shared_head else None
        for agent in self.trees[0].agents:
            for number, tree in enumerate(self.trees):
                voice = self._voice(tree, agent)
                if voice is None:
                    continue
                rows = actor_rows(
                    tree,
                    agent,
                    key=number,
                    window=voice.window,
                    temperature=voice.temperature_at(done),
                    budget=None if self.shared_head else token_budget,
                    value=head,
                )
                # an agent that never acted has a row without a token, which no model can read
                self.rows[number, agent] = [row for row in rows if row.spans or row.marks]

    def read(
        self,
        moving: Collection[str],
        references: Mapping[str, Follower],
        together: Together = one_by_one,
    ) -> None:
        """Add old log-probabilities for the models in `moving`, which take several steps, and the
        reference policy's if the loss needs them. `together` runs the passes of several models."""
        keys_of = {
            name: [key for key in self.rows if self.model(self.trees[key[0]], key[1]) == name]
            for name in self.actors
        }
        groups_of = {name: [self.rows[key] for key in keys] for name, keys in keys_of.items()}
        if self.parts.loss.old_logprobs == "recompute":
            passes = {
                NetworkKey("actor", name): partial(learner.evaluate, groups_of[name])
                for name, learner in self.actors.items()
                if name in moving
            }
            for key, outputs in together(passes).items() if passes else ():
                self._attach(keys_of[key.model], "old", outputs)
        for name, learner in self.actors.items():
            keys, groups = keys_of[name], groups_of[name]
            if self.parts.loss.needs_reference:
                bare = [
                    [replace(row, marks=()) if row.marks else row for row in group]
                    for group in groups
                ]
                outputs = (
                    references[name].evaluate(bare)
                    if name in references
                    else learner.evaluate(bare, reference=True)
                )
                self._attach(keys, "ref", outputs)

    def model(self, tree: Tree[Any], agent: str) -> str | None:
        """The trained model in an agent's seat; None for other players."""
        voice = self._voice(tree, agent)
        return None if voice is None else voice.model

    def head_values(self, numbers: Sequence[int]) -> list[AgentValues]:
        """Values of these trees from the heads on the trained actors."""
        by_tree: list[dict[str, Sequence[float | None]]] = [{} for _ in numbers]
        asked: dict[str, list[tuple[int, str]]] = {}
        for agent in self.trees[0].agents:
            for place, number in enumerate(numbers):
                model = self.model(self.trees[number], agent)
                if model is not None:
                    asked.setdefault(model, []).append((place, agent))
        for model, seats in asked.items():
            outputs = self.actors[model].evaluate([self.rows[numbers[p], a] for p, a in seats])
            for (place, agent), group in zip(seats, outputs, strict=True):
                number = numbers[place]
                series: list[float | None] = [None] * len(self.trees[number].nodes)
                for row, part in zip(self.rows[number, agent], group, strict=True):
                    for mark, value in zip(row.marks, part.values.tolist(), strict=True):
                        series[mark.node] = value
                by_tree[place][agent] = tuple(series)
        return list(by_tree)

    def ready(
        self,
        now: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        values: Sequence[AgentValues] | None,
        old: Sequence[AgentValues] | None,
    ) -> Ready:
        """The rows of the episodes `numbers` with advantages from their `values`; `now` are the
        parts at this point of the training budget."""
        batch = [episodes[number] for number in numbers]
        advantages = equal_groups(now.advantage(batch, values), now.advantage, batch, self.model)
        targets = None
        if self.shared_head and values is not None:
            targets = now.advantage.targets(batch, values)
        by_model: dict[str, dict[int, list[Row]]] = {name: {} for name in self.actors}
        for place, number in enumerate(numbers):
            for agent in batch[place].tree.agents:
                name = self.model(batch[place].tree, agent)
                if name is not None:
                    ready = by_model[name].setdefault(number, [])
                    for row in self.rows[number, agent]:
                        row = with_targets(row, agent, advantages[place], targets, old, place)
                        if row.spans or row.marks:
                            ready.append(row)
        of_state = self.parts.critic is not None and self.parts.critic.of_state
        return Ready(by_model, advantage_metrics(advantages, batch, values, of_state=of_state))

    def _voice(self, tree: Tree[Any], agent: str) -> Voice | None:
        voice = self.voices.get(tree.player(agent))
        return voice if voice is not None and voice.model in self.actors else None

    def _attach(
        self,
        keys: Sequence[tuple[int, str]],
        name: Literal["old", "ref"],
        outputs: Sequence[Sequence[Outputs]],
    ) -> None:
        for key, group in zip(keys, outputs, strict=True):
            self.rows[key] = [
                with_logprobs(row, name, tuple(part.logprobs.tolist()))
                for row, part in zip(self.rows[key], group, strict=True)
            ]
