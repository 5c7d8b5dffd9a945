"""What a task says to whom at each turn, and trees of that with every action at its limit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import DecPOMDP, Rollout
from colearn.critic.stream import Tokenize
from colearn.history import ChatFormat
from colearn.models.embedded import WarmStart
from colearn.rollout.transition import observe_all
from colearn.seeding import derive_rng
from colearn.types import Action, Node, Observation, Outcome, Tree

_WORD = "\ue000"
"""One token of an action's text, in the streams of any critic's tokenizer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The texts of one turn."""

    seen: Mapping[str, str]
    """By agent, of those who act."""
    told: str
    """m_t"""


Script = tuple[Turn, ...]
"""One item, turn by turn, to the horizon."""


def read_script(task: DecPOMDP[Any, Any], item: Any, number: int) -> Script:
    """Play one item with legal actions where the task offers them, with empty ones elsewhere. A
    turn that is not reached is taken to be like the last one that was; where agents act in turn,
    like the last one of those whose turn it would be."""
    rng = derive_rng("estimate", number)
    state = task.reset(item, rng)
    turns: list[Turn] = []
    for _ in range(task.horizon):
        seen = observe_all(task, state)
        if not seen:
            break
        turns.append(Turn(seen, task.global_info(state)))
        actions = {
            agent: task.legal_action(state, agent, rng) if isinstance(task, WarmStart) else ""
            for agent in seen
        }
        outcome = task.step(state, actions, rng)
        state = outcome.state
        if outcome.done:
            break
    period = len({tuple(turn.seen) for turn in turns})
    rest = itertools.islice(itertools.cycle(turns[-period:]), task.horizon - len(turns))
    return (*turns, *rest)


def live_nodes(shape: Rollout, script: Script) -> list[int]:
    """Histories of one episode at each turn at which agents act, where no episode ends early."""
    counts, live = [], 1
    for number, turn in enumerate(script):
        counts.append(live)
        live *= len(_continued(shape, number, turn))
    return counts


def joint_actions(shape: Rollout, script: Script) -> int:
    """Of one episode that goes to the horizon: Proposition 4.3 over the number of agents."""
    return sum(
        nodes * len(_pairs(shape, number, turn))
        for number, (nodes, turn) in enumerate(zip(live_nodes(shape, script), script, strict=True))
    )


def generations(shape: Rollout, script: Script, weight: Callable[[str], int]) -> int:
    """Actions sampled in one episode, each counted as `weight` of its agent."""
    return sum(
        nodes * count * weight(agent)
        for number, (nodes, turn) in enumerate(zip(live_nodes(shape, script), script, strict=True))
        for agent, count in shape.samples(number, tuple(turn.seen)).items()
    )


def _pairs(shape: Rollout, number: int, turn: Turn) -> Sequence[Mapping[str, int]]:
    return shape.joint_actions(shape.samples(number, tuple(turn.seen)))


def _continued(shape: Rollout, number: int, turn: Turn) -> Sequence[int]:
    outcomes = [Outcome(state=None, reward=0.0)] * len(_pairs(shape, number, turn))
    return shape.continues(outcomes)


@dataclass(frozen=True, slots=True)
class Speech:
    """How long an agent speaks, and in what format it is spoken to."""

    chat: ChatFormat
    max_tokens: int


def grow_tree(
    number: int, script: Script, shape: Rollout, speech: Mapping[str, Speech]
) -> Tree[Any]:
    """The tree of an episode that goes to the horizon, every action `max_tokens` long."""
    said = {
        agent: Action(_WORD * one.max_tokens, (one.chat.end_id,) * one.max_tokens)
        for agent, one in speech.items()
    }
    nodes: list[Node[Any]] = []

    def add(parent: Node[Any] | None, path: tuple[int, ...], acted: Sequence[str]) -> Node[Any]:
        spoke = {a for t in script[: len(path)] for a in t.seen}
        here = script[len(path)] if len(path) < len(script) else Turn({}, "")
        node: Node[Any] = Node(
            index=len(nodes),
            parent=None if parent is None else parent.index,
            path=path,
            state=None,
            observations={
                agent: speech[agent].chat.continuation(text, said[agent])
                if agent in spoke
                else speech[agent].chat.open(text)
                for agent, text in here.seen.items()
            },
            global_info=here.told,
            actions={agent: said[agent] for agent in acted},
        )
        nodes.append(node)
        return node

    live = [add(None, (), ())]
    for depth, turn in enumerate(script):
        following = []
        expanded = set(_continued(shape, depth, turn))
        for node in live:
            for child in range(len(_pairs(shape, depth, turn))):
                grown = add(node, (*node.path, child), tuple(turn.seen))
                if child in expanded:
                    following.append(grown)
        live = following
    return Tree(item=None, episode=number, agents=tuple(speech), nodes=tuple(nodes))


def limit_tokens(tokenize: Tokenize) -> Tokenize:
    """A critic's tokenizer that reads the actions of `grow_tree` at their full length."""

    def ids(text: str) -> tuple[int, ...]:
        return (*tokenize(text.replace(_WORD, "")), *[0] * text.count(_WORD))

    return ids


def prompt(tree: Tree[Any], agent: str, turn: int) -> Observation | None:
    """What `agent` is shown at the first node of a turn."""
    return next((node.observations.get(agent) for node in tree.nodes if node.turn == turn), None)
