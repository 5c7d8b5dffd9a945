"""State of one tree during a rollout: pending requests, candidates, new nodes.

A growth neither generates nor steps the task: `advance` does. All
randomness is a function of (seed, episode, path), so results do not depend on the order.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from colearn.contract import (
    ActionRequest,
    Branching,
    Child,
    Credit,
    DecPOMDP,
    Player,
    ProgramEpisodes,
    ReadsActions,
    Rollout,
    SampledAction,
    TokenAnswer,
)
from colearn.contract.asking import item_name, placed
from colearn.contract.length import check_length, overlong
from colearn.contract.seeding import Key, action_seed, derive_rng
from colearn.errors import TaskError
from colearn.text.reasoning import without_reasoning
from colearn.types import Action, Node, Observation, Outcome, Tree

from .size import check_size
from .transition import begin, global_information, measured, privileged, prompts
from .validate import validate_earned

Joint = Mapping[str, TokenAnswer]
Stepping = tuple[DecPOMDP[Any, Any], Any, dict[str, Any], tuple[Key, ...], str]
"""Arguments of `transition`."""


@dataclass(frozen=True, slots=True)
class Live:
    """A node that continues, with each seat's history, last action and number of actions."""

    node: Node[Any]
    histories: Mapping[str, Any]
    last: Mapping[str, Action]
    acted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """A joint action to execute."""

    child: int
    chosen: Mapping[str, int]
    candidate_of: str | None
    joint: Joint
    stepping: Stepping
    alternatives: Mapping[str, tuple[Action, ...]]


Tried = tuple[Edge, Outcome[Any]]
"""An executed joint action and its outcome."""


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
        self._adding = threading.Lock()

    @property
    def compares(self) -> bool:
        """Whether the shape reads the outcomes of a node's joint actions to choose further ones or
        the children that continue."""
        return self.shape.cuts or type(self.shape).next_round is not Rollout.next_round

    def start(self) -> list[Live]:
        """Add the root; return it unless it is terminal."""
        rng = derive_rng(self.seed, "reset", self.episode)
        state = begin(self.task, self.item, rng, self.item_name)
        outcome: Outcome[Any] = Outcome(state=state, reward=0.0)
        root = self._add(None, 0, outcome, {}, {})
        return [] if root.terminal else [Live(root, {}, {}, {})]

    def requests(self, at: Live) -> list[ActionRequest]:
        """The requests to the acting seats of a node. Errors: ConfigError for a tree too large."""
        node = at.node
        counts = self.shape.samples(self._branching(at))
        self._drawn += sum(counts.values())
        check_size(self._drawn, self.shape, node.turn)
        requests = []
        for seat, observation in node.observations.items():
            seeds = tuple(
                action_seed(self.seed, self.key, node.path, seat, k) for k in range(counts[seat])
            )
            requests.append(
                ActionRequest(
                    player=self.seats[seat],
                    seat=seat,
                    task=self.task,
                    state=node.state,
                    observation=observation,
                    history=None if observation.fresh else at.histories.get(seat),
                    seeds=seeds,
                )
            )
        return requests

    def edges(
        self, at: Live, drawn: Mapping[str, Sequence[TokenAnswer]], tried: Sequence[Tried] = ()
    ) -> list[Edge]:
        """The next round of joint actions, given each seat's answers and the outcomes in `tried`;
        empty if none is left."""
        counts = {seat: len(options) for seat, options in drawn.items()}
        following = self.shape.next_round(self._branching(at), counts, self._children(tried))
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
        edges = []
        for child, chosen in enumerate(following.joint_actions, start=len(tried)):
            joint = {seat: drawn[seat][k] for seat, k in chosen.items()}
            given = self._given(at.node, joint)
            keys = (self.seed, "step", self.key, *at.node.path, child)
            stepping = (self.task, at.node.state, given, keys, self.item_name)
            edges.append(Edge(child, chosen, following.candidate_of, joint, stepping, alternatives))
        return edges

    def settle(self, at: Live, tried: Sequence[Tried]) -> list[Live]:
        """Add the outcomes' nodes; return the children that continue. If the shape `compares`,
        `tried` must hold all joint actions of the node."""
        if self.shape.cuts and "local" in self.credit.reads:
            for _, outcome in tried:
                self._check_at_once(outcome, at.node.turn)
        executed = {edge.child for edge, _ in tried}
        if self.compares:
            children = self._children(tried)
            executed = set(self.shape.continues(self._branching(at), children))
        following = []
        for edge, outcome in tried:
            actions = {seat: answer.action for seat, answer in edge.joint.items()}
            last = {**at.last, **actions}
            node = self._add(
                at.node,
                edge.child,
                outcome,
                actions,
                last,
                alternatives=edge.alternatives,
                candidate_of=edge.candidate_of,
                cut=edge.child not in executed,
            )
            if not (node.terminal or node.cut):
                kept = {seat: answer.history for seat, answer in edge.joint.items()}
                acted = {**at.acted, **{seat: at.acted.get(seat, 0) + 1 for seat in actions}}
                following.append(Live(node, {**at.histories, **kept}, last, acted))
        return following

    def end_overlong(self, seat: str) -> None:
        """End a chain at its last node: the seat's server refuses its history as too long."""
        last = self.nodes[-1]
        ProgramEpisodes.of(self.task).abandon(last.state)
        final = measured(self.task, last.state, self.item_name)
        self.nodes[-1] = replace(last, observations={}, overlong=seat, metrics=final)

    def tree(self) -> Tree[Any]:
        """The finished tree, with nodes in the order of turn and path."""
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

    def _given(self, at: Node[Any], joint: Joint) -> dict[str, Any]:
        """The joint action as the task's `step` receives it."""
        if not ReadsActions.of(self.task).reads_actions:
            return {seat: without_reasoning(s.action.text) for seat, s in joint.items()}
        return {
            seat: SampledAction(answer.action, self.seats[seat], self._context_tokens(at, seat))
            for seat, answer in joint.items()
        }

    def _context_tokens(self, node: Node[Any], seat: str) -> int:
        """Tokens of a seat's context at a node, the node's observation included."""
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

    def _children(self, tried: Sequence[Tried]) -> list[Child]:
        return [
            Child(
                chosen=edge.chosen,
                outcome=outcome,
                rewards=self.credit.step(outcome, self.task.agents),
                candidate_of=edge.candidate_of,
            )
            for edge, outcome in tried
        ]

    def _branching(self, at: Live) -> Branching:
        keys = (self.seed, "shape", self.key, *at.node.path)
        return Branching(
            item=self.item, node=at.node, keys=keys, acted=at.acted, programs=self.programs
        )

    def _add(
        self,
        parent: Node[Any] | None,
        child: int,
        outcome: Outcome[Any],
        actions: Mapping[str, Action],
        last: Mapping[str, Action],
        *,
        alternatives: Mapping[str, tuple[Action, ...]] | None = None,
        candidate_of: str | None = None,
        cut: bool = False,
    ) -> Node[Any]:
        """Add an outcome's node, with the observation of each acting seat."""
        path = () if parent is None else (*parent.path, child)
        with placed(self.task, self.item_name):
            validate_earned(outcome, len(path))
        observations: dict[str, Observation] = {}
        if not outcome.done and len(path) < self.task.horizon:
            for seat, prompt in prompts(self.task, outcome.state, self.item_name).items():
                before = None if prompt.fresh else last.get(seat)
                with placed(self.task, self.item_name):
                    observations[seat] = self.seats[seat].read(prompt, before)
        info = global_information(self.task, outcome.state, self.item_name)
        hidden = privileged(self.task, outcome.state, self.item_name)
        node = Node(
            index=0,
            parent=None if parent is None else parent.index,
            path=path,
            state=outcome.state,
            observations=observations,
            global_info=info,
            privileged_info=hidden,
            actions=actions,
            alternatives={} if alternatives is None else alternatives,
            reward=outcome.reward,
            local_rewards=outcome.local_rewards,
            earned=outcome.earned,
            done=outcome.done,
            candidate_of=candidate_of,
            cut=cut,
        )
        ended_by = self._overlong(node)
        if ended_by is not None:
            node = replace(node, observations={}, overlong=ended_by)
            if not cut:
                ProgramEpisodes.of(self.task).abandon(outcome.state)
        if node.terminal:
            node = replace(node, metrics=measured(self.task, outcome.state, self.item_name))
        with self._adding:  # branches may grow in several threads
            node = replace(node, index=len(self.nodes))
            self.nodes.append(node)
        return node

    def _overlong(self, node: Node[Any]) -> str | None:
        """The first acting seat whose history leaves no room for an answer in its model.

        Errors: TaskError if that is the first observation alone; ConfigError where the player
        does not truncate."""
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
