"""Data types shared by every layer: plain frozen dataclasses, no torch.

The rollout of an episode is a `Tree` of `Node`s. A node is a joint history h_t: a state of the
task, and each agent's observations and actions up to that state. The edge into a node consists of
the joint action, the joint reward and the local rewards. The node stores the edge that leads to it,
so a tree is a flat tuple of nodes. A chain is a tree with one branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from colearn.contract.scored import as_number, mean_scored

State = TypeVar("State")

Finish = Literal["end", "length", "stop"]
"""Reason why an action ended: the end token, the token limit, or a stop string."""

Sources = tuple[tuple[int, str], ...]
"""Earlier actions of a history, as pairs (turn, agent)."""

Rewards = tuple[Mapping[str, float], ...]
"""For each node of a tree: the rewards of the edge into the node, by agent ({} at the root). NaN:
the task did not score the reward."""


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits on a single answer, in addition to the limits in the agent's sampling parameters."""

    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[State]):
    """Result of one joint action: the transition T and the reward R of the Dec-POMDP."""

    state: State
    reward: float | None
    """The joint reward r_t, shared by the whole team. None: not scored. Actions whose return
    includes an unscored reward are neither trained on nor used in a baseline."""
    done: bool = False
    """Whether the task ends after this joint action; the rollout enforces the horizon."""
    truncated: bool = False
    """Whether the episode stops after this joint action although the task has not ended, for
    example at a time limit. Its missing turns then have a value (`Node.truncated`), also if `done`
    is set."""
    local_rewards: Mapping[str, float | None] = field(default_factory=dict)
    """Additional rewards by agent (AT-GRPO's r_loc, a payoff per player). None: not scored."""
    earned: Mapping[tuple[int, str], float | None] = field(default_factory=dict)
    """Delayed local rewards of earlier actions of this episode, by (turn, agent)."""

    @property
    def last(self) -> bool:
        """Whether no joint action follows."""
        return self.done or self.truncated


@dataclass(frozen=True, slots=True)
class Observation:
    """o_{i,t}: what an agent observes at a turn. A task gives the text; the agent's player adds the
    token ids."""

    text: str
    tokens: tuple[int, ...] = ()
    """Token ids that the observation adds to the history: the whole continuation of the chat
    template, including the opening of the agent's answer, so a history is exactly the concatenation
    of observation and action ids. Empty for a player without tokens."""
    fresh: bool = False
    """Whether the observation opens a new context: the agent's history then starts over with this
    observation. Examples: a restated problem, or a workflow's call of a role."""
    made_from: Sources | None = None
    """Earlier actions whose text the observation contains; each of these actions is an edge of the
    executed graph. None: unknown."""
    limits: AnswerLimits | None = None
    """Limits on the answer, in addition to the limits in the agent's sampling parameters."""
    system: str | None = None
    """System text of a new context, in place of the agent's system text."""
    turns: tuple[tuple[str, str], ...] = ()
    """Pairs of (user, assistant) texts that precede `text` in a new context. No model is trained on
    these texts."""

    @property
    def whole(self) -> str:
        """All texts of the observation, joined by line breaks."""
        system = () if self.system is None else (self.system,)
        return "\n".join((*system, *(part for turn in self.turns for part in turn), self.text))


@dataclass(frozen=True, slots=True)
class Action:
    """a_{i,t}: the token ids exactly as sampled, including the end token if an end token was
    sampled.

    An action of a program or a server has text only and is never trained on.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Behaviour log-probability of each token under the sampling temperature."""
    finish: Finish = "end"
    version: int = 0
    """Version of the weights that sampled the action, which is the number of earlier updates of the
    model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Generic[State]):
    """A joint history h_t and the edge into it."""

    index: int
    """Index in `Tree.nodes`; parents precede their children."""
    parent: int | None
    path: tuple[int, ...]
    """Child numbers on the path from the root to this node; the path's length is the turn t."""
    state: State
    observations: Mapping[str, Observation]
    """o_{i,t} of each agent that acts at this turn; empty if the episode has ended."""
    programs: frozenset[str] = frozenset()
    """Agents that programs play, whose actions are not compared."""
    acted: Mapping[str, int] = field(default_factory=dict)
    """Number of earlier actions of each agent; an agent without an entry has taken no action."""
    global_info: str = ""
    """m_t: text that critics may read and agents never see."""
    privileged_info: str = ""
    """Text for centralised critics, which no agent sees."""
    actions: Mapping[str, Action] = field(default_factory=dict)
    """The joint action that led to this node; empty at the root."""
    alternatives: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    """Further actions of each agent, drawn at the parent from the same history and not executed."""
    reward: float | None = 0.0
    local_rewards: Mapping[str, float | None] = field(default_factory=dict)
    earned: Mapping[tuple[int, str], float | None] = field(default_factory=dict)
    done: bool = False
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """The task's metrics of `state`, set if the episode has ended. None: not measured."""
    candidate_of: str | None = None
    """The agent whose candidate action this joint action scores, while the other agents' actions
    are fixed. Only the action of this agent is a sample. None: the actions of all agents are
    samples."""
    cut: bool = False
    """Whether the joint action was only compared with its siblings: the episode continues from a
    sibling, not from this node."""
    overlong: str | None = None
    """The agent whose history left no room for an answer within the maximum length of the agent's
    model, so that the episode was truncated at this node; None: no agent."""
    missing_turns: int = 0
    """Number of turns from this node to the horizon, at least 1, if the episode was truncated here:
    it stopped, but neither the task nor the horizon ended it. 0: not truncated."""
    unanswered: Mapping[str, Observation] = field(default_factory=dict)
    """o_{i,t} of each agent that would act at this node if the episode were not truncated here.
    Critics read these observations. An observation that does not fit the agent's own model has no
    token ids."""

    def samples(self, agent: str) -> bool:
        """Whether the action of `agent` that led to this node is a sample for comparison and
        training."""
        return agent in self.actions and self.candidate_of in (None, agent)

    def candidates(self, k: int) -> dict[str, int]:
        """Number of actions for each acting agent: `k`, or 1 if a program plays the agent."""
        return {agent: 1 if agent in self.programs else k for agent in self.acting}

    @property
    def acting(self) -> tuple[str, ...]:
        """The agents that act at this node, in the task's order."""
        return tuple(self.observations)

    @property
    def turn(self) -> int:
        return len(self.path)

    @property
    def terminal(self) -> bool:
        """Whether no agent acts at this node: the task is done, the horizon is reached, or the
        episode is truncated. Unless it is truncated, V is 0."""
        return not self.observations

    @property
    def truncated(self) -> bool:
        """Whether the episode was cut at this node before it ended, so that V is not 0."""
        return self.missing_turns > 0

    @property
    def shown(self) -> Mapping[str, Observation]:
        """The observations of this turn, answered or not."""
        return self.unanswered if self.truncated else self.observations


@dataclass(frozen=True, slots=True)
class History:
    """One agent's private history o_0 a_0 ... o_t [a_t] since the start of the agent's context, as
    token ids.

    Example: the parts `Observation("hi", (10, 11)), Action("ok", (7, 2)), Observation("go", (12,))`
    are o_0 a_0 o_1 and `tokens` is (10, 11, 7, 2, 12).
    """

    parts: tuple[Observation | Action, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for part in self.parts for token in part.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Generic[State]):
    """The tree of joint histories of one episode."""

    item: Any
    episode: int
    """Number of the episode in the run. The seed and this number determine all randomness."""
    member: int = 0
    """Index of the tree among the trees of the same item and episode."""
    agents: tuple[str, ...]
    nodes: tuple[Node[State], ...]
    cast: Mapping[str, str] = field(default_factory=dict)
    """Player name by agent; an agent without an entry was played by the player of the same name."""
    rewards: Rewards = ()
    """Credited rewards of every agent at every edge, including edges where the agent did not act;
    returns, advantages and critics use only these. Empty until a credit is applied (`credited`)."""
    discount: float = 1.0
    """gamma, the discount between turns of credited rewards."""
    missing_turn_reward: float | None = None
    """Credited reward of every missing turn of a truncated episode, where no critic gives a value;
    None: returns that include missing turns are not scored."""
    _returns: dict[str, tuple[float, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of the credited returns by agent, shared by the advantage, the critic and the critic's
    evaluation."""

    def player(self, agent: str) -> str:
        """Name of the player that plays this agent."""
        return self.cast.get(agent, agent)

    def children(self, index: int) -> tuple[Node[State], ...]:
        return tuple(node for node in self.nodes if node.parent == index)

    def below(self) -> list[list[int]]:
        """For every node, the indices of the node's children; all are computed in a single pass."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            if node.parent is not None:
                children[node.parent].append(node.index)
        return children

    def ancestry(self, index: int) -> tuple[Node[State], ...]:
        """The nodes from the root to `index`, both included."""
        chain: list[Node[State]] = []
        cursor: int | None = index
        while cursor is not None:
            chain.append(self.nodes[cursor])
            cursor = self.nodes[cursor].parent
        return tuple(reversed(chain))

    def history(self, index: int, agent: str) -> History:
        """Observations and actions of `agent` since the start of the agent's context, up to and
        including the agent's observation at node `index`."""
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
        """Return G of every edge, computed from joint rewards: G_k = r_k + discount * mean over
        children.

        Entry `index` is the return of the joint action into node `index`; the root's entry is the
        mean return of the episode. Cut children, from which the episode does not continue, are
        excluded from the means. A return that includes an unscored reward is NaN and is also
        excluded. The missing turns of a truncated episode add nothing. Algorithms learn from
        `returns_of` instead.
        """
        return _returns(self.nodes, self._joint_rewards(), discount, {})

    def complete_returns(self, discount: float) -> tuple[float, ...]:
        """`returns`, in which missing turns have the reward `missing_turn_reward`. A return is NaN
        if it includes missing turns and this reward is None."""
        return _returns(self.nodes, self._joint_rewards(), discount, self.tails(discount))

    def _joint_rewards(self) -> list[float]:
        return [as_number(node.reward) for node in self.nodes]

    def tails(self, discount: float) -> dict[int, float]:
        """For each node at which the episode was truncated: the discounted sum of the rewards of
        the missing turns, or NaN if `missing_turn_reward` is None. 0 if `discount` is 0, because no
        return then includes later turns."""
        reward = as_number(self.missing_turn_reward)
        return {
            node.index: sum(reward * discount**turn for turn in range(node.missing_turns))
            if discount
            else 0.0
            for node in self.nodes
            if node.truncated
        }

    def credited(self, rewards: Rewards, discount: float = 1.0) -> Tree[State]:
        """The tree with these credited rewards and the discount between turns."""
        return replace(self, rewards=rewards, discount=discount)

    def rewards_of(self, agent: str) -> list[float]:
        """One agent's credited reward at every edge; NaN for a reward that is not scored.

        Errors: ValueError if no credit has been applied.
        """
        if not self.rewards:
            raise ValueError("the tree has no credited rewards; apply a credit first")
        return [rewards.get(agent, 0.0) for rewards in self.rewards]

    def returns_of(self, agent: str) -> tuple[float, ...]:
        """One agent's return G of every edge, computed from credited rewards: G_k = r_k + discount
        * mean over children; NaN for a return that is not scored. The missing turns of a truncated
        episode have the reward `missing_turn_reward`."""
        if agent not in self._returns:
            tails = self.tails(self.discount)
            self._returns[agent] = _returns(
                self.nodes, self.rewards_of(agent), self.discount, tails
            )
        return self._returns[agent]


def _returns(
    nodes: Sequence[Node[Any]],
    rewards: Sequence[float],
    discount: float,
    tails: Mapping[int, float],
) -> tuple[float, ...]:
    """Computes the returns of all edges. `tails`: the return after each node at which the episode
    was truncated."""
    below: list[list[float]] = [[] for _ in nodes]
    returns = [0.0] * len(nodes)
    for node in reversed(nodes):
        ways = below[node.index]
        future = tails[node.index] if node.index in tails else mean_scored(ways)
        if node.parent is None:
            returns[node.index] = future
        else:
            returns[node.index] = rewards[node.index] + discount * future
            if not node.cut:
                below[node.parent].append(returns[node.index])
    return tuple(returns)
