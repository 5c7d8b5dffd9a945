"""Plays one episode: agents act at their endpoints, and the task steps in this process.

Listeners of a play session receive events, which are mappings with `kind` and `episode`:

    started   item
    observed  turn, observations by agent, picture (the text of the task's `render`), and world
              (the task's `picture` as plain data); None for what the task does not provide
    asked     turn, agent: the page waits for an answer of the person who plays this agent
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
from functools import partial
from typing import Any

from colearn.contract import ActionRequest, DecPOMDP, Player, TokenAnswer
from colearn.contract.checked_task import CheckedTask
from colearn.contract.scored import as_reward
from colearn.contract.types import Action, Node, Outcome, Tree
from colearn.deploy.client.async_agent import AsyncConversation, AsyncRemoteAgent, Reply
from colearn.deploy.client.endpoint import TOO_LONG, Refused, RemoteError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.executors import run_in
from colearn.rollout.grow_tree import advance
from colearn.rollout.growth import Growth
from colearn.rollout.shapes import Chain

from .person import Person, PersonTurns

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaySetting:
    """Settings and resources shared by the episodes of a play session."""

    task: DecPOMDP[Any, Any]
    agents: Mapping[str, AsyncRemoteAgent | Person]
    seed: int
    greedy: bool
    thread: Executor
    """Executor that runs the task's functions other than `step`, one at a time."""
    steps: Executor
    """Executor that runs the task's steps."""
    tell: Tell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Describes why an episode ended early: the agent that was lost, the turn, and the reason."""

    agent: str
    turn: int
    reason: str


@dataclass(slots=True)
class PlayedEpisode:
    """A played episode, up to the last turn that was reached. Actions have tokens only if a colearn
    server sampled them."""

    tree: Tree[Any]
    """The episode as a tree without branches. Observations have no tokens."""
    replies: list[dict[str, Reply]] = field(default_factory=list)
    """The reply of each agent at each turn."""
    lost: Loss | None = None
    retries: dict[str, int] = field(default_factory=dict)
    """Number of retries of each agent. Agents without retries are left out."""
    recovered: dict[str, int] = field(default_factory=dict)
    """For each agent, the number of sessions that a server lost and that were replayed. Agents
    without lost sessions are left out."""


class _Lost(Exception):
    def __init__(self, agent: str, error: RemoteError) -> None:
        super().__init__(str(error))
        self.agent = agent
        self.overlong = isinstance(error, Refused) and error.code == TOO_LONG
        """Whether the agent's history is too long for the agent's model."""


async def play_episode(room: PlaySetting, number: int, item: Any) -> PlayedEpisode:
    """Play one item to its end; `number` and the seed together determine all randomness.

    If an agent is lost and all retries fail, the episode ends. Errors: TaskError if the task breaks
    its contract.
    """
    return await _Play(room, number, item).run()


@dataclass(frozen=True, slots=True)
class _Seat(Player):
    """An agent at its endpoint, or a person."""

    play: _Play

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return await self.play.act(request)


class _Play:
    """Plays one episode: asks the endpoints and informs the listeners."""

    def __init__(self, room: PlaySetting, number: int, item: Any) -> None:
        self.room, self.number, self.item = room, number, item
        self.replies: list[dict[str, Reply]] = []
        self.talks: dict[str, list[AsyncConversation | PersonTurns]] = {
            agent: [] for agent in room.agents
        }
        self.growth = Growth(
            room.task,
            item,
            Chain(),
            SharedReward(),
            {name: _Seat(self) for name in room.agents},
            {name: name for name in room.agents},
            seed=room.seed,
            episode=number,
        )

    async def run(self) -> PlayedEpisode:
        room = self.room
        self._tell("started", item=str(self.item))
        beside, step = (partial(run_in, pool) for pool in (room.thread, room.steps))
        failed: _Lost | None = None
        try:
            await advance(self.growth, self.act, beside=beside, step=step, listener=self)
        except _Lost as error:
            failed = error
        lost: Loss | None = None
        turn = self.growth.nodes[-1].turn
        if failed is not None:
            self.replies = self.replies[:turn]
        if failed is not None and failed.overlong and turn:
            await beside(self.growth.end_overlong, failed.agent)  # as in training
        elif failed is not None:
            lost = Loss(agent=failed.agent, turn=turn, reason=str(failed))
        answering = (
            talk.close()
            for agent, talks in self.talks.items()
            if lost is None or agent != lost.agent
            for talk in talks
        )
        await asyncio.gather(*answering)
        return self._end(lost)

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        """Errors: _Lost if an endpoint is lost and all retries fail."""
        node = self.growth.nodes[-1]

        def retried(reason: str) -> None:
            self._tell("retried", turn=node.turn, agent=request.seat, reason=reason)

        talk, agent = request.history, self.room.agents[request.seat]
        observed = request.observation
        if talk is None:
            talk = (
                agent.seated(self.number)
                if isinstance(agent, Person)
                else agent.conversation(system=observed.system, turns=observed.turns)
            )
            self.talks[request.seat].append(talk)
        if isinstance(agent, Person):
            self._tell("asked", turn=node.turn, agent=request.seat)
        (seed,) = request.seeds
        try:
            greedy = self.room.greedy
            reply = await talk.act(observed.text, greedy=greedy, seed=seed, retried=retried)
        except RemoteError as error:
            raise _Lost(request.seat, error) from None
        if len(self.replies) == node.turn:
            self.replies.append({})
        self.replies[node.turn][request.seat] = reply
        self._tell(
            "acted",
            turn=node.turn,
            agent=request.seat,
            text=reply.text,
            tokens=reply.tokens,
            seconds=reply.seconds,
        )
        action = Action(reply.text, reply.token_ids or (), finish=reply.finish)
        return [TokenAnswer(action, talk, reply.seconds)]

    async def stepped(self, at: Node[Any], outcome: Outcome[Any]) -> None:
        self._tell(
            "stepped",
            turn=at.turn,
            reward=outcome.reward,
            local_rewards=dict(outcome.local_rewards),
        )

    async def grown(self, node: Node[Any]) -> None:
        if self.room.tell is None:
            return
        view = await run_in(self.room.thread, _look, self.growth.checked, node.state)
        texts = {agent: observation.whole for agent, observation in node.observations.items()}
        self._tell("observed", turn=node.turn, observations=texts, **view)

    def _end(self, lost: Loss | None) -> PlayedEpisode:
        tree = self.growth.tree()
        if lost is None:
            metrics = dict(tree.nodes[-1].metrics)
            reached = as_reward(tree.returns(1.0)[0])
            self._tell("ended", **{"return": reached, "metrics": metrics})
        else:
            self._tell("lost", turn=lost.turn, agent=lost.agent, reason=lost.reason)
        retries = {
            agent: sum(talk.retries for talk in talks) for agent, talks in self.talks.items()
        }
        recovered = {
            agent: sum(talk.recovered for talk in talks) for agent, talks in self.talks.items()
        }
        return PlayedEpisode(
            tree=tree,
            replies=self.replies,
            lost=lost,
            retries={agent: count for agent, count in retries.items() if count},
            recovered={agent: count for agent, count in recovered.items() if count},
        )

    def _tell(self, kind: str, **fields: Any) -> None:
        if self.room.tell is not None:
            self.room.tell({"kind": kind, "episode": self.number, **fields})


def _look(task: CheckedTask, state: Any) -> dict[str, Any]:
    """Returns the state as text and as the plain data of a picture. A value is None if the task
    does not provide it."""
    return {"picture": task.render(state), "world": task.picture(state)}
