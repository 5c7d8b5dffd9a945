"""Exact evaluation: what the team is worth on a finite problem, computed and not sampled.

Every private history that the problem can produce is written out as the agent would see it, and
the agent's own network scores every legal reply there, in one teacher-forced pass over a tree in
which shared prefixes stand once. The tables that result are a joint policy, and its value is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from colearn.agents import ChatFormat
from colearn.config import AgentSettings
from colearn.errors import ConfigError
from colearn.learn.evaluate import evaluate as score
from colearn.learn.row import actor_rows
from colearn.models.network import Network
from colearn.tabular.exact_value import ExactEvaluation, evaluate
from colearn.tabular.histories import JointHistories
from colearn.tabular.model import Array, TabularModel
from colearn.types import Action, Node, Observation, Tree


@runtime_checkable
class FiniteTask(Protocol):
    """What a task offers, beside its contract, to be evaluated exactly (`dpomdp` does)."""

    agents: tuple[str, ...]
    horizon: int
    model: TabularModel
    reward_scale: float

    def action_words(self, agent: str) -> tuple[str, ...]:
        """The legal replies, in the order of the model's actions."""
        ...

    def shown(self, agent: str, turn: int, observation: int | None) -> str:
        """What `observe` gives at `turn` after the model's `observation`; None at turn 0."""
        ...

    def rejection_reward(self, turn: int) -> float:
        """The turn's reward, scaled, where a reply is not legal."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """An agent as exact evaluation sees it."""

    network: Network
    chat: ChatFormat
    settings: AgentSettings


class ExactEvaluator:
    """Values of the current weights on one finite task.

    A reply counts as legal in its usual tokens with the template's end token behind them; other
    spellings that the task would accept as well count as rejected. `exact_rejected`, the
    probability that an episode holds such a reply, bounds what this leaves open.

    Errors: ConfigError where the task is not finite, or sampling cuts the distribution.
    """

    def __init__(self, task: Any, readers: Mapping[str, Reader], *, token_budget: int) -> None:
        if not isinstance(task, FiniteTask):
            raise ConfigError(
                "evaluation.exact: needs a finite task such as dpomdp or one small game of "
                "open_spiel, played without a wrapper; set it to false"
            )
        require_plain_sampling({agent: reader.settings for agent, reader in readers.items()})
        self.task, self.readers, self.token_budget = task, dict(readers), token_budget
        self.histories = JointHistories(task.model, task.horizon)
        self._trees = {agent: self._tree(agent) for agent in task.agents}

    def metrics(self) -> dict[str, float]:
        """`exact_return`: J in the task's scaled rewards; and `exact_rejected`."""
        policy, evaluation = self.evaluate()
        last = self.histories.turns[-1]
        accepted = evaluation.joint_probabilities[-1]
        for number, agent in enumerate(self.task.agents):
            accepted = accepted * policy[agent][-1].sum(axis=1)[last.private[number]]
        return {
            "exact_return": evaluation.value * self.task.reward_scale,
            "exact_rejected": max(0.0, 1.0 - float(accepted.sum())),
        }

    def evaluate(self) -> tuple[dict[str, tuple[Array, ...]], ExactEvaluation]:
        """The joint policy as tables, and its exact evaluation in the model's own rewards."""
        policy = {agent: self._table(agent) for agent in self.task.agents}
        turns = range(self.task.horizon)
        rejected = [self.task.rejection_reward(t) / self.task.reward_scale for t in turns]
        return policy, evaluate(self.histories, policy, rejected=rejected)

    def _tree(self, agent: str) -> tuple[Tree[Any], list[list[list[int]]]]:
        """All private histories of `agent` as one tree, and for each turn, history and action the
        node that the reply leads to."""
        chat = self.readers[agent].chat
        words = self.task.action_words(agent)
        replies = [
            Action(
                word, (*chat.tokenizer(word, add_special_tokens=False)["input_ids"], chat.end_id)
            )
            for word in words
        ]
        opening = chat.open(self.task.shown(agent, 0, None))
        nodes = [bare_node(0, None, {agent: opening}, {})]
        places: list[list[list[int]]] = []
        by_turn = self.histories.private(agent)
        at: dict[tuple[int, ...], int] = {(): 0}
        for turn, privates in enumerate(by_turn):
            following: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            if turn + 1 < len(by_turn):
                for private in by_turn[turn + 1]:
                    following.setdefault(private[:-1], []).append(private)
            places.append([])
            after: dict[tuple[int, ...], int] = {}
            for private in privates:
                places[-1].append([])
                for number, reply in enumerate(replies):
                    below = following.get((*private, number), [None])
                    places[-1][-1].append(len(nodes))
                    for child in below:
                        seen: dict[str, Observation] = {}
                        if child is not None:
                            text = self.task.shown(agent, turn + 1, child[-1])
                            seen = {agent: chat.continuation(text, reply)}
                            after[child] = len(nodes)
                        nodes.append(bare_node(len(nodes), at[private], seen, {agent: reply}))
            at = after
        tree = Tree(item=None, episode=0, agents=(agent,), nodes=tuple(nodes))
        return tree, places

    def _table(self, agent: str) -> tuple[Array, ...]:
        """pi(a | h) at every private history, by turn."""
        reader = self.readers[agent]
        tree, places = self._trees[agent]
        rows = actor_rows(
            tree,
            agent,
            window=reader.settings.window,
            temperature=reader.settings.sampling.temperature,
            budget=self.token_budget,
        )
        [outputs] = score(reader.network, [rows], token_budget=self.token_budget)
        logprobs = np.zeros(len(tree.nodes))
        for row, part in zip(rows, outputs, strict=True):
            sizes = [span.end - span.start for span in row.spans]
            for span, piece in zip(row.spans, part.logprobs.double().split(sizes), strict=True):
                logprobs[span.node] = float(piece.sum())
        return tuple(np.exp(logprobs[np.array(turn)]) for turn in places)


def require_plain_sampling(agents: Mapping[str, AgentSettings]) -> None:
    """Errors: ConfigError where sampling is not from the model's own distribution."""
    for agent, settings in agents.items():
        sampling = settings.sampling
        if sampling.temperature == 0.0 or sampling.top_p < 1.0 or sampling.top_k or sampling.stop:
            raise ConfigError(
                f"evaluation.exact: agents.{agent}.sampling must be the plain distribution; "
                "leave out top_p, top_k and stop, and set a temperature above 0"
            )


def bare_node(
    index: int,
    parent: int | None,
    observations: Mapping[str, Observation],
    actions: Mapping[str, Action],
) -> Node[None]:
    """A node of what was said alone: no state, no path."""
    return Node(
        index=index,
        parent=parent,
        path=(),
        state=None,
        observations=observations,
        actions=actions,
    )
