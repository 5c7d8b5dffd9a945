"""The data that every layer passes on: plain frozen dataclasses, no torch.

A rollout of one episode is a `Tree` of `Node`s. A node is a joint history h_t: the task's state and
what each agent has seen and done on the way to it. The edge into a node carries the joint action,
its reward and the local rewards; it is stored on the node it leads to, so that a tree is one flat
tuple and a chain is a tree with one branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

State = TypeVar("State")

Finish = Literal["end", "length", "stop"]
"""Why an action ended: the end token, the token limit, or a stop string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[State]):
    """What one joint action led to: T and R of the Dec-POMDP."""

    state: State
    reward: float
    """The joint reward r_t, shared by the whole team."""
    done: bool = False
    """True when the task itself ends here; the horizon is applied by the rollout."""
    local_rewards: Mapping[str, float] = field(default_factory=dict)
    """Extra rewards by agent name (AT-GRPO's r_loc, a payoff per player)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """o_{i,t}: the text an agent is shown and the ids by which it entered its history.

    `tokens` holds the whole continuation of the chat template, the opening of the agent's answer
    included, so a history is the concatenation of observation and action ids and nothing else.
    """

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """a_{i,t}: the sampled ids exactly as sampled, end token included where one was sampled."""

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Behaviour log-probability of each token under the sampling temperature."""
    finish: Finish = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Generic[State]):
    """A joint history h_t and the edge that led to it."""

    index: int
    """Place in `Tree.nodes`; parents come before their children."""
    parent: int | None
    path: tuple[int, ...]
    """Child numbers from the root; its length is the turn t."""
    state: State
    observations: Mapping[str, Observation]
    """o_{i,t} of each agent that acts at this turn; empty where the episode has ended."""
    global_info: str = ""
    """m_t: critics may read it, agents never do."""
    actions: Mapping[str, Action] = field(default_factory=dict)
    """The joint action that led here; empty at the root."""
    reward: float = 0.0
    local_rewards: Mapping[str, float] = field(default_factory=dict)
    done: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The task's metrics of `state`, filled where the episode has ended."""

    @property
    def turn(self) -> int:
        return len(self.path)

    @property
    def terminal(self) -> bool:
        """No agent acts here: the task is done or the horizon is reached, so V = 0."""
        return not self.observations


@dataclass(frozen=True, slots=True)
class History:
    """One agent's private history o_0 a_0 ... o_t [a_t], as ids, in order.

    Example: the parts `Observation("hi", (10, 11)), Action("ok", (7, 2)), Observation("go", (12,))`
    are o_0 a_0 o_1 and `tokens` is (10, 11, 7, 2, 12).
    """

    parts: tuple[Observation | Action, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for part in self.parts for token in part.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Generic[State]):
    """Everything sampled from one item: the episode's tree of joint histories."""

    item: Any
    episode: int
    """Number of the episode within the run; together with the seed it fixes all randomness."""
    agents: tuple[str, ...]
    nodes: tuple[Node[State], ...]

    def children(self, index: int) -> tuple[Node[State], ...]:
        return tuple(node for node in self.nodes if node.parent == index)

    def ancestry(self, index: int) -> tuple[Node[State], ...]:
        """The nodes from the root to `index`, both included."""
        chain: list[Node[State]] = []
        cursor: int | None = index
        while cursor is not None:
            chain.append(self.nodes[cursor])
            cursor = self.nodes[cursor].parent
        return tuple(reversed(chain))

    def history(self, index: int, agent: str) -> History:
        """What `agent` has seen and done on the way to node `index`, its observation included."""
        parts: list[Observation | Action] = []
        for node in self.ancestry(index):
            if agent in node.actions:
                parts.append(node.actions[agent])
            if agent in node.observations:
                parts.append(node.observations[agent])
        return History(tuple(parts))

    def leaves(self) -> Iterator[Node[State]]:
        parents = {node.parent for node in self.nodes}
        return (node for node in self.nodes if node.index not in parents)

    def returns(self, discount: float) -> tuple[float, ...]:
        """G of every node's edge: G_k = r_k + discount * mean over children of G.

        Entry `index` is the return of the joint action that led to node `index`; the root's entry
        is the mean return of the episode.
        """
        below: list[list[float]] = [[] for _ in self.nodes]
        returns = [0.0] * len(self.nodes)
        for node in reversed(self.nodes):
            future = sum(below[node.index]) / len(below[node.index]) if below[node.index] else 0.0
            if node.parent is None:
                returns[node.index] = future
            else:
                returns[node.index] = node.reward + discount * future
                below[node.parent].append(returns[node.index])
        return tuple(returns)


@dataclass(frozen=True, slots=True)
class Sample:
    """One joint transition (h_t, m_t, a_t, r_t, h_{t+1}), named by the node it leads to."""

    tree: Tree[Any]
    child: int

    @property
    def before(self) -> Node[Any]:
        parent = self.tree.nodes[self.child].parent
        assert parent is not None, "the root is no transition"
        return self.tree.nodes[parent]

    @property
    def after(self) -> Node[Any]:
        return self.tree.nodes[self.child]
