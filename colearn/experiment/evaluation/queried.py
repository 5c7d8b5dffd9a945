"""Exact measures of a game: the policy is asked at every decision, and the task judges it.

A player's private histories are written out as it would see them; its own network scores every
valid reply at each, shared prefixes once, in one teacher-forced pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colearn.agents import ChatFormat
from colearn.contract.decisions import Decision, QueriedTask
from colearn.learn.evaluate import evaluate as score
from colearn.learn.row import actor_rows
from colearn.types import Action, Node, Tree

from .exact import Reader, bare_node, require_plain_sampling


class QueriedEvaluator:
    """Measures of the current weights on one game that can be written out.

    A reply counts as valid in its usual tokens with the template's end token behind them. The judge
    is given the valid replies' probabilities made to sum to 1; `exact_rejected`, the largest
    probability of anything else at any decision, says how much that changes.

    Errors: ConfigError where the game is too large, or sampling cuts the distribution.
    """

    def __init__(
        self, task: QueriedTask, readers: Mapping[str, Reader], *, token_budget: int
    ) -> None:
        require_plain_sampling({agent: reader.settings for agent, reader in readers.items()})
        self.task, self.readers, self.token_budget = task, dict(readers), token_budget
        self._decisions = {agent: list(task.decisions(agent)) for agent in task.agents}
        self._trees = {
            agent: _trees(agent, found, readers[agent].chat)
            for agent, found in self._decisions.items()
        }

    def metrics(self) -> dict[str, float]:
        """What the task's judge says, and `exact_rejected`."""
        rejected = 0.0
        policy: dict[str, dict[str, list[float]]] = {}
        for agent, decisions in self._decisions.items():
            policy[agent] = {}
            for decision, raw in zip(decisions, self._probabilities(agent), strict=True):
                rejected = max(rejected, 1.0 - sum(raw))
                policy[agent][decision.key] = [weight / sum(raw) for weight in raw]
        return {**self.task.judge(policy), "exact_rejected": rejected}

    def _probabilities(self, agent: str) -> list[list[float]]:
        """pi(reply | history) of every valid reply at every decision."""
        reader = self.readers[agent]
        trees, places = self._trees[agent]
        groups = [
            actor_rows(
                tree,
                agent,
                window=reader.settings.window,
                temperature=reader.settings.sampling.temperature,
                budget=self.token_budget,
            )
            for tree in trees
        ]
        logprobs = [np.zeros(len(tree.nodes)) for tree in trees]
        outputs = score(reader.network, groups, token_budget=self.token_budget)
        for number, (rows, parts) in enumerate(zip(groups, outputs, strict=True)):
            for row, part in zip(rows, parts, strict=True):
                sizes = [span.end - span.start for span in row.spans]
                pieces = part.logprobs.double().split(sizes)
                for span, piece in zip(row.spans, pieces, strict=True):
                    logprobs[number][span.node] = float(piece.sum())
        return [[float(np.exp(logprobs[tree][node])) for tree, node in at] for at in places]


_Place = tuple[int, int]
"""A node, by the number of its tree."""


def _trees(
    agent: str, decisions: Sequence[Decision], chat: ChatFormat
) -> tuple[list[Tree[Any]], list[list[_Place]]]:
    """All private histories, a tree for each first observation; and for every decision and valid
    reply the node that the reply leads to."""
    growing: list[list[Node[None]]] = []
    roots: dict[str, int] = {}
    asked: dict[tuple[_Place, str], _Place] = {}
    """Where the agent stands after a node, once it has read a text there."""
    answered: dict[tuple[_Place, str], _Place] = {}
    replies: dict[str, Action] = {}

    def reply_of(text: str) -> Action:
        if text not in replies:
            ids = chat.tokenizer(text, add_special_tokens=False)["input_ids"]
            replies[text] = Action(text, (*ids, chat.end_id))
        return replies[text]

    def read(text: str, after: _Place | None, last: str | None) -> _Place:
        """The node at which the text stands as the newest observation."""
        if after is None or last is None:
            if text not in roots:
                roots[text] = len(growing)
                growing.append([bare_node(0, None, {agent: chat.open(text)}, {})])
            return roots[text], 0
        if (after, text) not in asked:
            tree, before = growing[after[0]], after[1]
            seen = {agent: chat.continuation(text, reply_of(last))}
            tree.append(bare_node(len(tree), before, seen, {agent: reply_of(last)}))
            asked[after, text] = (after[0], len(tree) - 1)
        return asked[after, text]

    def stand(decision: Decision) -> _Place:
        at: _Place | None = None
        last: str | None = None
        for text, reply in (*decision.history, (decision.observation, None)):
            at = read(text, at, last)
            last = reply
        assert at is not None
        return at

    places = []
    for decision in decisions:
        at = stand(decision)
        row = []
        for text in decision.replies:
            if (at, text) not in answered:
                tree = growing[at[0]]
                tree.append(bare_node(len(tree), at[1], {}, {agent: reply_of(text)}))
                answered[at, text] = (at[0], len(tree) - 1)
            row.append(answered[at, text])
        places.append(row)
    trees = [Tree(item=None, episode=0, agents=(agent,), nodes=tuple(nodes)) for nodes in growing]
    return trees, places
