"""State of one tree during a rollout: its pending requests, candidate actions and new nodes.

A `Growth` neither generates actions nor steps the task: `lockstep` and `grow_tree` do both. All
randomness is a function of (seed, episode, path), so results do not depend on the order of
branches.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from colearn.contract import (
    ActionRequest,
    Credit,
    DecPOMDP,
    Player,
    Rollout,
    Round,
    SampledAction,
    TokenAnswer,
)
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.part_errors import calling_part
from colearn.contract.seeding import Key, action_seed, derive_rng
from colearn.contract.task_results import validate_at_once, validate_earned
from colearn.contract.types import Node, Observation, Outcome, Tree
from colearn.text.reasoning import without_reasoning

from .context_limit import overlong, readable
from .shapes import check_size

StepArguments = tuple[CheckedTask, Any, dict[str, Any], tuple[Key, ...]]
"""Arguments of `CheckedTask.transition`."""
Branch = tuple[Node[Any], Mapping[str, TokenAnswer]]
"""A node, and the last answer of each agent on the path to it, which has the agent's history."""


class Growth:
    """A tree under construction."""

    def __init__(
        self,
        task: DecPOMDP[Any, Any],
        item: Any,
        shape: Rollout,
        credit: Credit,
        players: Mapping[str, Player],
        cast: Mapping[str, str],
        *,
        seed: int,
        episode: int,
        member: int = 0,
    ) -> None:
        self.task, self.item, self.shape, self.credit = task, item, shape, credit
        self.checked = CheckedTask(task, item_name(item))
        self._prepared = item
        """The argument of the task's `reset`."""
        self.seats = {seat: players[name] for seat, name in cast.items()}
        self.programs = frozenset(
            seat for seat, player in self.seats.items() if not player.draws_candidates
        )
        self.cast = {seat: name for seat, name in cast.items() if seat != name}
        self.seed, self.episode, self.member = seed, episode, member
        self.key: Key = episode if member == 0 else f"{episode}/{member}"
        self.nodes: list[Node[Any]] = []
        """Nodes in the order in which they were added."""
        self._drawn = self._joined = 0
        self._adding = threading.Lock()

    @property
    def compares(self) -> bool:
        """Whether the shape uses the outcomes of a node's joint actions to choose further joint
        actions, or to choose the children that continue."""
        return self.shape.cuts or type(self.shape).next_round is not Rollout.next_round

    def prepare(self) -> None:
        """Start the episode's program, if there is one, before the root is added."""
        self._prepared = self.checked.prepare(self.item)

    def start(self) -> list[Branch]:
        """Add the root. Returns the root unless the root is terminal."""
        rng = derive_rng(self.seed, "reset", self.episode)
        state = self.checked.reset(self._prepared, rng)
        root = Node(
            index=0, parent=None, path=(), state=state, observations={}, programs=self.programs
        )
        return self._add([(self._observed(root, {}), {})])

    def requests(self, at: Branch) -> list[ActionRequest]:
        """Return the requests to the players of a node's acting agents. Errors: ConfigError if the
        tree is too large."""
        node, answers = at
        with calling_part("algorithm.rollout", self.shape):
            counts = self.shape.samples(node)
        self._drawn += sum(counts.values())
        check_size(self._drawn, self.shape, node.turn)
        requests = []
        for seat, observation in node.observations.items():
            seeds = tuple(
                action_seed(self.seed, self.key, node.path, seat, k) for k in range(counts[seat])
            )
            before = None if observation.fresh else answers.get(seat)
            requests.append(
                ActionRequest(
                    player=self.seats[seat],
                    seat=seat,
                    task=self.task,
                    state=node.state,
                    observation=observation,
                    history=None if before is None else before.history,
                    seeds=seeds,
                )
            )
        return requests

    def next_round(
        self, at: Branch, candidates: Mapping[str, Sequence[TokenAnswer]], tried: Sequence[Round]
    ) -> Round | None:
        """Return the next joint actions to execute, given each agent's answers and the rounds that
        have been executed; None if no joint action is left."""
        node, _ = at
        if tried and not self.compares:
            return None
        counts = {seat: len(options) for seat, options in candidates.items()}
        with calling_part("algorithm.rollout", self.shape):
            following = self.shape.next_round(node, counts, tried, self._rng(node, tried))
        if following is None or not following.joint_actions:
            return None
        self._joined += len(following.joint_actions)
        check_size(self._joined, self.shape, node.turn)
        return following

    def children(
        self,
        at: Branch,
        candidates: Mapping[str, Sequence[TokenAnswer]],
        following: Round,
        earlier: int = 0,
    ) -> list[Branch]:
        """Return a child of a node for each joint action of a round; the children have no state
        until they are executed. `earlier` is the number of children of earlier rounds."""
        node, answers = at
        alternatives = {}
        if self.shape.draws_alternatives:
            used_candidates = {
                (seat, k) for chosen in following.joint_actions for seat, k in chosen.items()
            }
            alternatives = {
                seat: tuple(
                    o.action for k, o in enumerate(options) if (seat, k) not in used_candidates
                )
                for seat, options in candidates.items()
            }
        children = list[Branch]()
        for number, chosen in enumerate(following.joint_actions, start=earlier):
            acting = {seat: candidates[seat][k] for seat, k in chosen.items()}
            acted = {seat: node.acted.get(seat, 0) + 1 for seat in acting}
            child = Node(
                index=0,
                parent=node.index,
                path=(*node.path, number),
                state=None,
                observations={},
                programs=self.programs,
                acted={**node.acted, **acted},
                actions={seat: answer.action for seat, answer in acting.items()},
                alternatives=alternatives,
                candidate_of=following.candidate_of,
            )
            children.append((child, {**answers, **acting}))
        return children

    def step_arguments(self, child: Branch) -> StepArguments:
        """Return the arguments with which `CheckedTask.transition` executes a joint action. A
        program receives the joint action at once."""
        node, answers = child
        assert node.parent is not None, "the root has no joint action"
        parent = self.nodes[node.parent]
        actions = self._as_read({seat: answers[seat] for seat in node.actions})
        keys = (self.seed, "step", self.key, *node.path)
        return self.checked, self.checked.send(parent.state, actions), actions, keys

    def with_outcome(self, child: Branch, outcome: Outcome[Any]) -> Branch:
        """Return a child with the outcome of its joint action."""
        node, answers = child
        node = replace(
            node,
            state=outcome.state,
            reward=outcome.reward,
            local_rewards=outcome.local_rewards,
            earned=outcome.earned,
            done=outcome.done,
            missing_turns=self._missing(node.turn) if outcome.truncated else 0,
        )
        return node, answers

    def credited(self, executed: Round, children: Sequence[Branch]) -> Round:
        """Return a round with the credits of its children; unchanged unless `compares`."""
        if not self.compares:
            return executed
        with calling_part("algorithm.credit", self.credit):
            credits = [self.credit.step(node, self.task.agents) for node, _ in children]
        return replace(executed, credits=credits)

    def settle(
        self, at: Branch, children: Sequence[Branch], tried: Sequence[Round] = ()
    ) -> list[Branch]:
        """Add executed children of a node; return those that continue. If `compares` is true,
        `children` must hold the children of all rounds, which are `tried`."""
        node, _ = at
        if self.shape.cuts and "local" in self.credit.reads:
            for child, _ in children:
                validate_at_once(child, self.shape)
        continuing = set(range(len(children)))
        if self.compares:
            with calling_part("algorithm.rollout", self.shape):
                continuing = set(self.shape.continues(node, tried, self._rng(node, tried)))
        return self._add(
            [
                (self._observed(child, answers, cut=number not in continuing), answers)
                for number, (child, answers) in enumerate(children)
            ]
        )

    def _add(self, branches: Sequence[Branch]) -> list[Branch]:
        """Add nodes; return the branches at whose nodes agents act next. All observations must have
        been made, because a call that fails in a thread may be repeated in the main thread."""
        with self._adding:  # branches may grow in several threads
            first = len(self.nodes)
            added = [
                (replace(node, index=index), answers)
                for index, (node, answers) in enumerate(branches, start=first)
            ]
            self.nodes += [node for node, _ in added]
        return [at for at in added if not (at[0].terminal or at[0].cut)]

    def _rng(self, at: Node[Any], tried: Sequence[Round] = ()) -> np.random.Generator:
        """The random generator of the shape's decisions at a node (`Rollout`)."""
        agent = tried[-1].candidate_of if tried else None
        compared = () if agent is None else (agent,)
        return derive_rng(self.seed, "shape", self.key, *at.path, *compared)

    def end_overlong(self, seat: str) -> None:
        """End a chain at its last node, because a server has refused an agent's history as too
        long."""
        last = self.nodes[-1]
        self.checked.abandon(last.state)
        final = self.checked.metrics(last.state)
        self.nodes[-1] = replace(
            last,
            observations={},
            unanswered=last.observations,
            overlong=seat,
            missing_turns=self._missing(last.turn),
            metrics=final,
        )

    def _missing(self, turn: int) -> int:
        """The number of missing turns of an episode that is truncated after `turn` turns."""
        return max(1, self.checked.horizon_of(self.item) - turn)

    def tree(self) -> Tree[Any]:
        """Return the finished tree, with nodes ordered by turn and path."""
        nodes = sorted(self.nodes, key=lambda node: (node.turn, node.path))
        if any(node.index != number for number, node in enumerate(nodes)):
            place = {node.index: number for number, node in enumerate(nodes)}
            nodes = [
                replace(
                    node,
                    index=number,
                    parent=None if node.parent is None else place[node.parent],
                )
                for number, node in enumerate(nodes)
            ]
        return Tree(
            item=self.item,
            episode=self.episode,
            member=self.member,
            agents=tuple(self.task.agents),
            nodes=tuple(nodes),
            cast=self.cast,
        )

    def _as_read(self, answers: Mapping[str, TokenAnswer]) -> dict[str, Any]:
        """Convert a joint action to the form that the task's `step` receives."""
        if not self.task.reads_actions:
            return {seat: without_reasoning(answer.action.text) for seat, answer in answers.items()}
        return {
            seat: SampledAction(answer.action, self.seats[seat], answer.context)
            for seat, answer in answers.items()
        }

    def _observed(
        self, node: Node[Any], answers: Mapping[str, TokenAnswer], *, cut: bool = False
    ) -> Node[Any]:
        """Return an executed node with the observation of each acting agent. `answers` contains
        each agent's most recent answers."""
        with self.checked.placed():
            validate_earned(node.earned, node.turn)
        observed: dict[str, Observation] = {}
        if node.truncated or (not node.done and node.turn < self.task.horizon):
            for seat, observation in self.checked.observe(node.state).items():
                last = None if observation.fresh else answers.get(seat)
                before = None if last is None else last.action
                with self.checked.placed():
                    observed[seat] = self.seats[seat].read(observation, before)
        info = self.checked.global_info(node.state)
        hidden = self.checked.privileged_info(node.state)
        with self.checked.placed():
            ended_by = None if node.truncated else overlong(self.nodes, node, observed, self.seats)
        unanswered: dict[str, Observation] = {}
        if ended_by is not None or node.truncated:
            unanswered = readable(self.nodes, node, observed, self.seats)
            observed = {}
        if ended_by is not None and not cut:
            self.checked.abandon(node.state)
        metrics = {} if observed else self.checked.metrics(node.state)
        return replace(
            node,
            observations=observed,
            global_info=info,
            privileged_info=hidden,
            cut=cut,
            overlong=ended_by,
            missing_turns=node.missing_turns if ended_by is None else self._missing(node.turn),
            unanswered=unanswered,
            metrics=metrics,
        )
