"""State of one tree during a rollout: its pending requests, candidate actions and new nodes.

A `Growth` neither generates actions nor steps the task: `advance` does both. All randomness is a
function of (seed, episode, path), so results do not depend on the order of branches.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from colearn.contract import (
    ActionRequest,
    Child,
    Credit,
    DecPOMDP,
    FrontierNode,
    Player,
    ProgramEpisodes,
    ReadsActions,
    Rollout,
    SampledAction,
    TokenAnswer,
)
from colearn.contract.asking import item_name, placed
from colearn.contract.context_limit import check_length, overlong
from colearn.contract.seeding import Key, action_seed, derive_rng
from colearn.errors import TaskError
from colearn.text.reasoning import without_reasoning
from colearn.types import Node, Observation, Outcome, Tree

from .shapes import check_size
from .task_calls import begin, global_information, measured, observations, privileged
from .validate import validate_earned

StepArguments = tuple[DecPOMDP[Any, Any], Any, dict[str, Any], tuple[Key, ...], str]
"""Arguments of `transition`."""


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
        self.item_name = item_name(item)
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
        self._visited: list[FrontierNode] = []
        """Nodes at which agents have acted; kept only for a shape that chooses among them."""
        self._revisits = shape.revisits
        self._adding = threading.Lock()

    @property
    def compares(self) -> bool:
        """Whether the shape uses the outcomes of a node's joint actions to choose further joint
        actions, or to choose the children that continue."""
        return self.shape.cuts or type(self.shape).next_round is not Rollout.next_round

    def start(self) -> list[FrontierNode]:
        """Add the root. Returns the root unless the root is terminal."""
        rng = derive_rng(self.seed, "reset", self.episode)
        state = begin(self.task, self.item, rng, self.item_name)
        outcome: Outcome[Any] = Outcome(state=state, reward=0.0)
        root = self._add(None, outcome, Child(number=0, chosen={}), {})
        return [] if root.terminal else [self._frontier(root, {}, {})]

    def resume(self, unsure: Mapping[tuple[int, ...], float]) -> list[FrontierNode]:
        """Return the nodes from which a tree that has ended grows further; `unsure` is the critic's
        uncertainty by path. A tree is resumed only once."""
        visited = sorted(self._visited, key=lambda at: (at.turn, at.node.path))
        self._visited, self._revisits = [], False
        chosen = self.shape.further(visited, [unsure.get(at.node.path) for at in visited])
        executed = Counter(node.parent for node in self.nodes)
        return [
            replace(visited[place], executed=executed[visited[place].node.index])
            for place in chosen
        ]

    def requests(self, at: FrontierNode) -> list[ActionRequest]:
        """Return the requests to the players of a node's acting agents. Errors: ConfigError if the
        tree is too large."""
        node = at.node
        counts = self.shape.samples(at)
        self._drawn += sum(counts.values())
        check_size(self._drawn, self.shape, node.turn)
        requests = []
        for seat, observation in node.observations.items():
            seeds = tuple(
                action_seed(self.seed, self.key, node.path, seat, at.executed + k)
                for k in range(counts[seat])
            )
            before = None if observation.fresh else at.answers.get(seat)
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

    def joint_actions(
        self,
        at: FrontierNode,
        drawn: Mapping[str, Sequence[TokenAnswer]],
        tried: Sequence[Child] = (),
    ) -> list[Child]:
        """Return the next round of joint actions to execute, given each agent's answers and the
        joint actions already executed. The result is empty if no joint action is left."""
        counts = {seat: len(options) for seat, options in drawn.items()}
        following = self.shape.next_round(at, counts, tried)
        if following is None:
            return []
        self._joined += len(following.joint_actions)
        check_size(self._joined, self.shape, at.node.turn)
        alternatives = {}
        if self.shape.draws_alternatives:
            taken = {(seat, k) for chosen in following.joint_actions for seat, k in chosen.items()}
            alternatives = {
                seat: tuple(o.action for k, o in enumerate(options) if (seat, k) not in taken)
                for seat, options in drawn.items()
            }
        return [
            Child(
                number=number,
                chosen=chosen,
                answers={seat: drawn[seat][k] for seat, k in chosen.items()},
                candidate_of=following.candidate_of,
                alternatives=alternatives,
            )
            for number, chosen in enumerate(following.joint_actions, start=at.executed + len(tried))
        ]

    def step_arguments(self, at: FrontierNode, child: Child) -> StepArguments:
        """Return the arguments with which `transition` executes a joint action."""
        keys = (self.seed, "step", self.key, *at.node.path, child.number)
        actions = self._as_read(at.node, child.answers)
        return self.task, at.node.state, actions, keys, self.item_name

    def executed(self, child: Child, outcome: Outcome[Any]) -> Child:
        """Return the joint action with its outcome and, if `compares` is true, with its credit."""
        rewards = self.credit.step(outcome, self.task.agents) if self.compares else {}
        return replace(child, outcome=outcome, rewards=rewards)

    def settle(self, at: FrontierNode, tried: Sequence[Child]) -> list[FrontierNode]:
        """Add the nodes of executed joint actions; return the nodes that continue. If `compares` is
        true, `tried` must hold all joint actions of the node."""
        if self.shape.cuts and "local" in self.credit.reads:
            for child in tried:
                self._check_at_once(_outcome(child), at.node.turn)
        continuing = {child.number for child in tried}
        if self.compares:
            continuing = set(self.shape.continues(at, tried))
        following = []
        for child in tried:
            cut = child.number not in continuing
            answers = {**at.answers, **child.answers}
            node = self._add(at.node, _outcome(child), child, answers, cut=cut)
            if not (node.terminal or cut):
                acted = {seat: at.acted.get(seat, 0) + 1 for seat in child.answers}
                following.append(self._frontier(node, answers, {**at.acted, **acted}))
        return following

    def end_overlong(self, seat: str) -> None:
        """End a chain at its last node, because a server has refused an agent's history as too
        long."""
        last = self.nodes[-1]
        ProgramEpisodes.of(self.task).abandon(last.state)
        final = measured(self.task, last.state, self.item_name)
        self.nodes[-1] = replace(last, observations={}, overlong=seat, metrics=final)

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

    def _as_read(self, at: Node[Any], answers: Mapping[str, TokenAnswer]) -> dict[str, Any]:
        """Convert a joint action to the form that the task's `step` receives."""
        if not ReadsActions.of(self.task).reads_actions:
            return {seat: without_reasoning(one.action.text) for seat, one in answers.items()}
        return {
            seat: SampledAction(one.action, self.seats[seat], self._context_tokens(at, seat))
            for seat, one in answers.items()
        }

    def _context_tokens(self, node: Node[Any], seat: str) -> int:
        """Return the number of tokens in an agent's context at a node, including the node's
        observation."""
        count = 0
        while True:
            observation = node.observations.get(seat)
            if observation is not None:
                count += len(observation.tokens)
                if observation.fresh:
                    return count
            if node.parent is None:
                return count
            if seat in node.actions:
                count += len(node.actions[seat].tokens)
            node = self.nodes[node.parent]

    def _check_at_once(self, outcome: Outcome[Any], turn: int) -> None:
        for before, agent in outcome.earned:
            if before != turn:
                raise TaskError(
                    f"task.step: pays '{agent}' at turn {turn} for turn {before}, and "
                    f"{type(self.shape).__name__} compares what is paid at once; set pays_later to "
                    "True on the task, and train it by mappo or mhgpo"
                )

    def _frontier(
        self, node: Node[Any], answers: Mapping[str, TokenAnswer], acted: Mapping[str, int]
    ) -> FrontierNode:
        at = FrontierNode(
            item=self.item,
            node=node,
            keys=(self.seed, "shape", self.key, *node.path),
            acted=acted,
            answers=answers,
            programs=self.programs,
        )
        if self._revisits:
            self._visited.append(at)
        return at

    def _add(
        self,
        parent: Node[Any] | None,
        outcome: Outcome[Any],
        child: Child,
        answers: Mapping[str, TokenAnswer],
        *,
        cut: bool = False,
    ) -> Node[Any]:
        """Add the node of an outcome, with the observation of each acting agent. `answers` contains
        each agent's most recent answers."""
        path = () if parent is None else (*parent.path, child.number)
        with placed(self.task, self.item_name):
            validate_earned(outcome, len(path))
        observed: dict[str, Observation] = {}
        if not outcome.done and len(path) < self.task.horizon:
            for seat, seen in observations(self.task, outcome.state, self.item_name).items():
                last = None if seen.fresh else answers.get(seat)
                before = None if last is None else last.action
                with placed(self.task, self.item_name):
                    observed[seat] = self.seats[seat].read(seen, before)
        info = global_information(self.task, outcome.state, self.item_name)
        hidden = privileged(self.task, outcome.state, self.item_name)
        node = Node(
            index=0,
            parent=None if parent is None else parent.index,
            path=path,
            state=outcome.state,
            observations=observed,
            global_info=info,
            privileged_info=hidden,
            actions={seat: answer.action for seat, answer in child.answers.items()},
            alternatives=child.alternatives,
            reward=outcome.reward,
            local_rewards=outcome.local_rewards,
            earned=outcome.earned,
            done=outcome.done,
            candidate_of=child.candidate_of,
            cut=cut,
        )
        ended_by = self._overlong(node)
        if ended_by is not None:
            node = replace(node, observations={}, overlong=ended_by)
            if not cut:
                ProgramEpisodes.of(self.task).abandon(outcome.state)
        metrics = measured(self.task, outcome.state, self.item_name) if node.terminal else {}
        with self._adding:  # branches may grow in several threads
            node = replace(node, index=len(self.nodes), metrics=metrics)
            self.nodes.append(node)
        return node

    def _overlong(self, node: Node[Any]) -> str | None:
        """Return the first acting agent whose history leaves no room for an answer within the
        maximum length of the agent's model.

        Errors: TaskError if the first observation alone is too long; ConfigError if the player may
        not truncate the episode."""
        for seat in node.observations:
            player = self.seats[seat]
            if player.positions is None:
                continue
            tokens = self._context_tokens(node, seat)
            if node.parent is None:
                with placed(self.task, self.item_name):
                    check_length(seat, tokens, player.positions)
            elif tokens >= player.positions:
                if not player.truncates:
                    raise overlong(seat, tokens, player.positions)
                return seat
        return None


def _outcome(child: Child) -> Outcome[Any]:
    assert child.outcome is not None, "only executed joint actions become nodes"
    return child.outcome
