"""One episode: the agents act at their endpoints, the task steps here.

Whoever follows a play is told of it in events, mappings with `kind` and `episode`:

    started   item
    observed  turn, observations by agent, and the world, None where the task does not show it:
              picture, the text of `render`, and world, `picture` as plain data
    retried   turn, agent, reason
    acted     turn, agent, text, tokens, seconds
    stepped   turn, reward, local_rewards
    ended     return, metrics
    lost      turn, agent, reason
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from colearn.client.async_agent import AsyncConversation, AsyncRemoteAgent, Reply
from colearn.client.endpoint import RemoteError
from colearn.contract import DecPOMDP
from colearn.rollout.transition import observe_all, transition
from colearn.seeding import derive_rng, derive_seed
from colearn.types import Action, Node, Observation, Outcome, Tree

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What the episodes of one play share."""

    task: DecPOMDP[Any, Any]
    agents: Mapping[str, AsyncRemoteAgent]
    seed: int
    greedy: bool
    thread: Executor
    """Where the task's other functions run, one after another."""
    steps: Executor
    """Where the task steps."""
    tell: Tell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Why an episode ended before the task did."""

    agent: str
    turn: int
    reason: str


@dataclass(slots=True)
class Episode:
    """An episode as far as it came. Action tokens are known from colearn's servers only."""

    tree: Tree[Any]
    """A chain; observations without tokens."""
    replies: list[dict[str, Reply]] = field(default_factory=list)
    """By turn and agent."""
    lost: Loss | None = None
    retries: dict[str, int] = field(default_factory=dict)
    """By agent, where there were any."""
    recovered: dict[str, int] = field(default_factory=dict)
    """By agent, where a server lost the session and the episode went on without it."""


class _Lost(Exception):
    def __init__(self, agent: str, error: RemoteError) -> None:
        super().__init__(str(error))
        self.agent = agent


async def play_episode(table: Table, number: int, item: Any) -> Episode:
    """Play one item out; `number`, with the seed, fixes all randomness.

    An agent that stays lost ends the episode. Errors: TaskError where the task breaks its contract.
    """
    return await _Play(table, number, item).run()


class _Play:
    def __init__(self, table: Table, number: int, item: Any) -> None:
        self.table, self.number, self.item = table, number, item
        self.nodes: list[Node[Any]] = []
        self.replies: list[dict[str, Reply]] = []
        self.talks: dict[str, AsyncConversation] = {}

    async def run(self) -> Episode:
        table = self.table
        self._tell("started", item=str(self.item))
        rng = derive_rng(table.seed, "reset", self.number)
        state = await self._beside(table.thread, table.task.reset, self.item, rng)
        await self._grow(Outcome(state=state, reward=0.0), {})
        self.talks = {name: agent.conversation() for name, agent in table.agents.items()}
        lost: Loss | None = None
        while not self.nodes[-1].terminal and lost is None:
            lost = await self._turn()
        answering = (t for a, t in self.talks.items() if lost is None or a != lost.agent)
        await asyncio.gather(*(talk.close() for talk in answering))
        return self._end(lost)

    async def _turn(self) -> Loss | None:
        """Everyone who observes acts, and the task steps; why not, where an agent is lost."""
        table, node = self.table, self.nodes[-1]
        failed: list[_Lost] = []
        acting: dict[str, asyncio.Task[Reply]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for agent, seen in node.observations.items():
                    acting[agent] = group.create_task(self._act(agent, seen.text, node))
        except* _Lost as losses:
            failed = [error for error in losses.exceptions if isinstance(error, _Lost)]
        if failed:
            return Loss(agent=failed[0].agent, turn=node.turn, reason=str(failed[0]))
        replies = {agent: task.result() for agent, task in acting.items()}
        self.replies.append(replies)
        texts = {agent: reply.text for agent, reply in replies.items()}
        keys = (table.seed, "step", self.number, *node.path, 0)
        outcome = await self._beside(table.steps, transition, table.task, node.state, texts, keys)
        self._tell(
            "stepped",
            turn=node.turn,
            reward=outcome.reward,
            local_rewards=dict(outcome.local_rewards),
        )
        actions = {
            agent: Action(reply.text, reply.token_ids or (), finish=reply.finish)
            for agent, reply in replies.items()
        }
        await self._grow(outcome, actions)
        return None

    async def _act(self, agent: str, text: str, node: Node[Any]) -> Reply:
        table = self.table
        seed = derive_seed(table.seed, "act", self.number, *node.path, agent, 0)

        def retried(reason: str) -> None:
            self._tell("retried", turn=node.turn, agent=agent, reason=reason)

        try:
            reply = await self.talks[agent].act(
                text, greedy=table.greedy, seed=seed, retried=retried
            )
        except RemoteError as error:
            raise _Lost(agent, error) from None
        self._tell(
            "acted",
            turn=node.turn,
            agent=agent,
            text=reply.text,
            tokens=reply.tokens,
            seconds=reply.seconds,
        )
        return reply

    async def _grow(self, outcome: Outcome[Any], actions: Mapping[str, Action]) -> None:
        table = self.table
        node = await self._beside(table.thread, self._node, outcome, actions)
        self.nodes.append(node)
        if table.tell is not None:
            shown = await self._beside(table.thread, _look, table.task, outcome.state)
            texts = {agent: seen.text for agent, seen in node.observations.items()}
            self._tell("observed", turn=node.turn, observations=texts, **shown)

    def _node(self, outcome: Outcome[Any], actions: Mapping[str, Action]) -> Node[Any]:
        """The node that an outcome leads to, with what each acting agent sees there."""
        task = self.table.task
        path = (*self.nodes[-1].path, 0) if self.nodes else ()
        observations: dict[str, Observation] = {}
        if not outcome.done and len(path) < task.horizon:
            shown = observe_all(task, outcome.state)
            observations = {agent: Observation(text, ()) for agent, text in shown.items()}
        return Node(
            index=len(self.nodes),
            parent=len(self.nodes) - 1 if self.nodes else None,
            path=path,
            state=outcome.state,
            observations=observations,
            actions=actions,
            reward=outcome.reward,
            local_rewards=outcome.local_rewards,
            done=outcome.done,
            metrics={} if observations else dict(task.metrics(outcome.state)),
        )

    def _end(self, lost: Loss | None) -> Episode:
        tree = Tree(
            item=self.item,
            episode=self.number,
            agents=tuple(self.table.task.agents),
            nodes=tuple(self.nodes),
        )
        if lost is None:
            metrics = dict(self.nodes[-1].metrics)
            self._tell("ended", **{"return": tree.returns(1.0)[0], "metrics": metrics})
        else:
            self._tell("lost", turn=lost.turn, agent=lost.agent, reason=lost.reason)
        talks = self.talks.items()
        return Episode(
            tree=tree,
            replies=self.replies,
            lost=lost,
            retries={agent: talk.retries for agent, talk in talks if talk.retries},
            recovered={agent: talk.recovered for agent, talk in talks if talk.recovered},
        )

    async def _beside(self, pool: Executor, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run what may be slow beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)

    def _tell(self, kind: str, **fields: Any) -> None:
        if self.table.tell is not None:
            self.table.tell({"kind": kind, "episode": self.number, **fields})


def _look(task: DecPOMDP[Any, Any], state: Any) -> dict[str, Any]:
    """The world as text and as plain data, each None where the task does not offer it."""
    render, picture = (getattr(task, name, None) for name in ("render", "picture"))
    return {
        "picture": None if render is None else render(state),
        "world": None if picture is None else picture(state).plain(),
    }
