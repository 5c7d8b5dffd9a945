"""Probabilities of an agent's valid replies at enumerated histories, computed by the agent's
network.

The histories of an agent form trees of texts, in which shared prefixes are scored once. The replies
at a history form a tree of tokens with one softmax at every branching point. The probabilities of
the valid replies at a history therefore sum to at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from colearn.contract.rows import Row
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.exact.model import Array
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.next_tokens import QueriedIds, next_probabilities
from colearn.training.learners.packed_rows import actor_rows


class HistoryNode(NamedTuple):
    """A node in a tree of an agent's histories."""

    tree: int
    node: int


_Edge = tuple[HistoryNode, int]
"""A pair (node, token index). The probability that this token follows the node is queried."""


class QueriedHistories:
    """Holds the enumerated histories of one agent, and the queried replies. The histories with the
    same first observation form a tree.

    A reply is scored as its canonical tokens followed by the template's end token.
    """

    def __init__(self, agent: str, spec: AgentSpec, network: Network) -> None:
        self.agent, self.spec, self.network = agent, spec, network
        self._trees: list[list[Node[None]]] = []
        self._asked: list[dict[int, list[int]]] = []
        self._roots: dict[str, HistoryNode] = {}
        self._observed: dict[tuple[HistoryNode, int, str], HistoryNode] = {}
        self._spoken: dict[_Edge, HistoryNode] = {}
        self._replies: dict[str, Action] = {}
        self._questions: list[list[list[_Edge]]] = []

    def opened(self, text: str) -> HistoryNode:
        """Returns the node of the history that consists of the agent's first observation."""
        if text not in self._roots:
            self._roots[text] = HistoryNode(len(self._trees), 0)
            opening = self.spec.chat_format.open(text)
            self._trees.append([bare_node(0, None, {self.agent: opening}, {})])
            self._asked.append({})
        return self._roots[text]

    def observed(self, place: HistoryNode, reply: str, text: str) -> HistoryNode:
        """Returns the node of the history that extends `place` by `reply` and the next
        observation."""
        action = self._reply(reply)
        before = self._behind(place, action.tokens[:-1])
        key = before, action.tokens[-1], text
        if key not in self._observed:
            observation = self.spec.chat_format.continuation(text, action)
            last_token = Action(reply, action.tokens[-1:])
            self._observed[key] = self._grow(before, last_token, {self.agent: observation})
        return self._observed[key]

    def ask(self, place: HistoryNode, replies: Sequence[str]) -> None:
        """Query the probability of each of `replies` at a history."""
        question = []
        for text in replies:
            tokens = self._reply(text).tokens
            edges = []
            for count, token in enumerate(tokens):
                at = self._behind(place, tokens[:count])
                queried_tokens = self._asked[at.tree].setdefault(at.node, [])
                if token not in queried_tokens:
                    queried_tokens.append(token)
                edges.append((at, queried_tokens.index(token)))
            question.append(edges)
        self._questions.append(question)

    def probabilities(self, temperatures: Sequence[float], token_budget: int) -> list[Array]:
        """Returns pi(reply | history) of every query, in the order of the calls of `ask`, with
        shape [temperatures, replies]; temperature 0 is greedy decoding."""
        queried_ids: list[QueriedIds] = list(self._asked)
        by_tree = next_probabilities(
            self.network,
            self.rows(token_budget),
            queried_ids,
            temperatures=temperatures,
            token_budget=token_budget,
        )
        return [
            np.stack([_product(by_tree, edges) for edges in question], axis=1)
            for question in self._questions
        ]

    def rows(self, token_budget: int | None) -> list[Row]:
        """The rows of all trees; every queried node is marked exactly once."""
        rows: list[Row] = []
        for number, nodes in enumerate(self._trees):
            tree: Tree[Any] = Tree(item=None, episode=0, agents=(self.agent,), nodes=tuple(nodes))
            rows += actor_rows(
                tree,
                self.agent,
                number=number,
                window=self.spec.window,
                budget=token_budget,
                value="next",
            )
        return [replace(row, spans=(), behaviour=()) for row in rows]

    def _reply(self, text: str) -> Action:
        if text not in self._replies:
            chat = self.spec.chat_format
            self._replies[text] = Action(text, (*chat.spell(text), chat.end_id))
        return self._replies[text]

    def _behind(self, place: HistoryNode, tokens: Sequence[int]) -> HistoryNode:
        """Returns the node after the first `tokens` of a reply."""
        for token in tokens:
            key = place, token
            if key not in self._spoken:
                self._spoken[key] = self._grow(place, Action("", (token,)), {})
            place = self._spoken[key]
        return place

    def _grow(
        self, place: HistoryNode, action: Action, observations: Mapping[str, Observation]
    ) -> HistoryNode:
        nodes = self._trees[place.tree]
        nodes.append(bare_node(len(nodes), place.node, observations, {self.agent: action}))
        return HistoryNode(place.tree, len(nodes) - 1)


def _product(by_tree: Sequence[Mapping[int, Array]], edges: Sequence[_Edge]) -> Array:
    """The product of a reply's token probabilities, shape [temperatures]."""
    factors = [by_tree[at.tree][at.node][:, number] for at, number in edges]
    return np.prod(factors, axis=0)


def bare_node(
    index: int,
    parent: int | None,
    observations: Mapping[str, Observation],
    actions: Mapping[str, Action],
) -> Node[None]:
    """A node with only observations and actions, without state and path."""
    return Node(
        index=index,
        parent=parent,
        path=(),
        state=None,
        observations=observations,
        actions=actions,
    )
