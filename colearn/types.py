"""Data types shared by every layer: plain frozen dataclasses, no torch.

A rollout of one episode is a `Tree` of `Node`s. A node is a joint history h_t: the task's state and
what each agent has seen and done on the way to it. The edge into a node carries the joint action,
its reward and the local rewards; it is stored on the node it leads to, so that a tree is one flat
tuple and a chain is a tree with one branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

State = TypeVar("State")

Finish = Literal["end", "length", "stop"]
"""Why an action ended: the end token, the token limit, or a stop string."""

Sources = tuple[tuple[int, str], ...]
"""Earlier actions on the way to a node, each as (turn, agent)."""

Rewards = tuple[Mapping[str, float], ...]
"""For each node of a tree, by agent: what the joint action that led there paid ({} at the root)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one answer, in addition to those of the agent's sampling."""

    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a task may show an agent instead of plain text."""

    text: str
    fresh: bool = False
    """A new context: the agent's history starts over with this prompt (a restated problem, a
    workflow's call of a role)."""
    made_from: Sources | None = None
    """The earlier actions whose text it holds: the edges of the executed graph. None: not said."""
    system: str | None = None
    """The system text of a new context, instead of the agent's own."""
    turns: tuple[tuple[str, str], ...] = ()
    """Turns, as (user, assistant) texts, that precede `text` in a new context. They are context:
    nothing in them was sampled here, and nothing in them is trained."""
    limits: Limits | None = None

    @property
    def whole(self) -> str:
        """All texts of the prompt, one after the other."""
        before = (part for turn in self.turns for part in turn)
        return "\n".join((*(() if self.system is None else (self.system,)), *before, self.text))


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
    earned: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """Delayed local rewards: what earlier actions of this episode, each as (turn, agent), turn out
    to have earned."""


@dataclass(frozen=True, slots=True)
class Observation:
    """o_{i,t}: the text an agent is shown and the ids by which it entered its history.

    `tokens` holds the whole continuation of the chat template, the opening of the agent's answer
    included, so a history is the concatenation of observation and action ids and nothing else.
    """

    text: str
    tokens: tuple[int, ...]
    fresh: bool = False
    """The first of a new context: nothing before it is in the agent's history any more."""
    made_from: Sources | None = None
    """The earlier actions whose text it holds, where the task says so."""
    limits: Limits | None = None
    """Bounds on the answer, beside those of the agent's sampling."""
    system: str | None = None
    """The system text of the context that it opens, where the prompt has one; `text` begins with
    it."""

    @property
    def user_text(self) -> str:
        """`text` without the system text."""
        return self.text if self.system is None else self.text.removeprefix(f"{self.system}\n")


@dataclass(frozen=True, slots=True)
class Action:
    """a_{i,t}: the sampled ids exactly as sampled, end token included where one was sampled.

    What a program or a server said has text alone, and is never trained.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Behaviour log-probability of each token under the sampling temperature."""
    finish: Finish = "end"
    version: int = 0
    """Of the weights that spoke: the updates that their model had made."""


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
    privileged_info: str = ""
    """What no agent sees; for central critics."""
    actions: Mapping[str, Action] = field(default_factory=dict)
    """The joint action that led here; empty at the root."""
    alternatives: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    """Further actions of each agent, drawn at the parent from the same history and not executed."""
    reward: float = 0.0
    local_rewards: Mapping[str, float] = field(default_factory=dict)
    earned: Mapping[tuple[int, str], float] = field(default_factory=dict)
    done: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The task's metrics of `state`, filled where the episode has ended."""
    candidate_of: str | None = None
    """The agent whose candidate the joint action scores, the other agents' actions held fixed; only
    that agent's action is a sample. None: every agent's is."""
    cut: bool = False
    """The joint action was compared with others and not executed: the episode goes on elsewhere."""

    def samples(self, agent: str) -> bool:
        """Whether the action of `agent` that led here is a sample to compare and to train."""
        return agent in self.actions and self.candidate_of in (None, agent)

    @property
    def turn(self) -> int:
        return len(self.path)

    @property
    def terminal(self) -> bool:
        """No agent acts here: the task is done or the horizon is reached, so V = 0."""
        return not self.observations


@dataclass(frozen=True, slots=True)
class History:
    """One agent's private history o_0 a_0 ... o_t [a_t] since its context began, as ids, in order.

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
    member: int = 0
    """Number among the trees of its item and episode."""
    agents: tuple[str, ...]
    nodes: tuple[Node[State], ...]
    cast: Mapping[str, str] = field(default_factory=dict)
    """Who sat in each agent's seat, by player name; an agent left out played itself."""

    def player(self, agent: str) -> str:
        """Who sat in this agent's seat."""
        return self.cast.get(agent, agent)

    def children(self, index: int) -> tuple[Node[State], ...]:
        return tuple(node for node in self.nodes if node.parent == index)

    def below(self) -> list[list[int]]:
        """The children of every node by index, in one pass."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            if node.parent is not None:
                found[node.parent].append(node.index)
        return found

    def ancestry(self, index: int) -> tuple[Node[State], ...]:
        """The nodes from the root to `index`, both included."""
        chain: list[Node[State]] = []
        cursor: int | None = index
        while cursor is not None:
            chain.append(self.nodes[cursor])
            cursor = self.nodes[cursor].parent
        return tuple(reversed(chain))

    def history(self, index: int, agent: str) -> History:
        """What `agent` has seen and done on the way to node `index` since its context began, its
        observation there included."""
        parts: list[Observation | Action] = []
        for node in self.ancestry(index):
            if agent in node.actions:
                parts.append(node.actions[agent])
            if agent in node.observations:
                if node.observations[agent].fresh:
                    parts = []
                parts.append(node.observations[agent])
        return History(tuple(parts))

    def leaves(self) -> Iterator[Node[State]]:
        parents = {node.parent for node in self.nodes}
        return (node for node in self.nodes if node.index not in parents)

    def returns(self, discount: float) -> tuple[float, ...]:
        """G of every node's edge, over joint rewards: G_k = r_k + discount * mean over children.

        Entry `index` is the return of the joint action that led to node `index`; the root's entry
        is the mean return of the episode. A cut child is in no mean: only what was executed counts.
        What an algorithm learns from is `Credited`.
        """
        return _returns(self.nodes, [node.reward for node in self.nodes], discount)


def _returns(
    nodes: Sequence[Node[Any]], rewards: Sequence[float], discount: float
) -> tuple[float, ...]:
    below: list[list[float]] = [[] for _ in nodes]
    returns = [0.0] * len(nodes)
    for node in reversed(nodes):
        ways = below[node.index]
        future = sum(ways) / len(ways) if ways else 0.0
        if node.parent is None:
            returns[node.index] = future
        else:
            returns[node.index] = rewards[node.index] + discount * future
            if not node.cut:
                below[node.parent].append(returns[node.index])
    return tuple(returns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited(Generic[State]):
    """A tree, what each joint action was worth to each agent, and the discount between turns.

    Returns, advantages and critics read these rewards and no others.
    """

    tree: Tree[State]
    rewards: Rewards
    """Of every agent at every edge, whether it acted there or not."""
    discount: float = 1.0
    """gamma"""

    def returns(self, agent: str) -> tuple[float, ...]:
        """G of every node's edge to one agent: G_k = r_k + discount * mean over children."""
        own = [rewards.get(agent, 0.0) for rewards in self.rewards]
        return _returns(self.tree.nodes, own, self.discount)


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
