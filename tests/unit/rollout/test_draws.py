"""What fixes a draw: the seed, what it is for, the episode and the place in the tree. The words
stay from version to version, so that a run resumed by a later one draws what it would have drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from tiny import Notes, Scene

from colearn.contract import ActionRequest, Player, Round, TokenAnswer
from colearn.contract.seeding import Key, action_seed, derive_rng
from colearn.contract.types import Action, Node, Tree
from colearn.rollout.agents.cast.seats import Own
from colearn.rollout.grow import Order, grow
from colearn.rollout.shapes import KaryTree
from colearn.training.learners.minibatch import UpdateSchedule

SEED = 3


def number(rng: np.random.Generator) -> int:
    return int(rng.integers(10**9))


def expected(*keys: Key) -> int:
    return number(derive_rng(SEED, *keys))


class Dice(Notes):
    """A clue and every reward are thrown."""

    def reset(self, item: tuple[str, ...], rng: np.random.Generator) -> Scene:
        return Scene((str(number(rng)), *item[1:]))

    def step(self, state: Scene, actions: Mapping[str, str], rng: np.random.Generator) -> Any:
        return replace(super().step(state, actions, rng), reward=float(number(rng)))


@dataclass(frozen=True)
class Twice(KaryTree):
    """Two trees for every item; notes what is drawn."""

    trees_drawn: list[int] = field(default_factory=list)
    nodes_drawn: list[int] = field(default_factory=list)

    def trees(self, item: Any, agents: Sequence[str], rng: np.random.Generator) -> Sequence[Any]:
        self.trees_drawn.append(number(rng))
        return (self, self)

    def next_round(
        self,
        at: Node[Any],
        counts: Mapping[str, int],
        tried: Sequence[Round],
        rng: np.random.Generator,
    ) -> Round | None:
        if not tried:
            self.nodes_drawn.append(number(rng))
        return super().next_round(at, counts, tried, rng)


@dataclass(frozen=True)
class Scored(KaryTree):
    """Scores ada's candidates and then goes on from the first; notes what is drawn."""

    drawn: list[int] = field(default_factory=list)

    def next_round(
        self,
        at: Node[Any],
        counts: Mapping[str, int],
        tried: Sequence[Round],
        rng: np.random.Generator,
    ) -> Round | None:
        self.drawn.append(number(rng))
        return None if tried else Round(self.joint_actions(at, counts), "ada")

    def continues(
        self, at: Node[Any], tried: Sequence[Round], rng: np.random.Generator
    ) -> Sequence[int]:
        self.drawn.append(number(rng))
        return [0]


@dataclass(frozen=True)
class Thrown(Own):
    """Notes what is drawn."""

    drawn: list[int] = field(default_factory=list)

    def seats(self, *asked: Any) -> Mapping[str, str]:
        self.drawn.append(number(asked[-1]))
        return super().seats(*asked)


class Seeds(Player):
    """Says its seeds."""

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return [TokenAnswer(Action(str(seed))) for seed in request.seeds]


SHAPE, CAST = Twice(2), Thrown()


def played(order: Order) -> list[Tree[Any]]:
    """Two items of two trees, each a root and the two joint actions tried there."""
    for drawn in (SHAPE.trees_drawn, SHAPE.nodes_drawn, CAST.drawn):
        drawn.clear()
    task = Dice(horizon=1, items=2)
    players = dict.fromkeys(task.agents, Seeds())
    items = task.items("train")
    return grow(task, items, players, SHAPE, seed=SEED, cast=CAST, order=order)[0]


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_every_draw_of_a_tree_has_its_own_name(order: Order) -> None:
    trees = played(order)
    names: list[Key] = [0, "0/1", 1, "1/1"]
    assert [(tree.episode, tree.member) for tree in trees] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for tree, name in zip(trees, names, strict=True):
        assert tree.nodes[0].state.clues[0] == str(expected("reset", tree.episode))
        for k, node in enumerate(tree.nodes[1:]):
            assert node.reward == expected("step", name, k)
            for agent in tree.agents:
                assert node.actions[agent].text == str(action_seed(SEED, name, (), agent, k))
    assert set(SHAPE.nodes_drawn) == {expected("shape", name) for name in names}


def test_after_a_round_a_shape_draws_for_the_agent_that_was_scored() -> None:
    shape, task = Scored(2), Dice(horizon=2, items=1)
    grow(task, task.items("train"), dict.fromkeys(task.agents, Seeds()), shape, seed=SEED)
    before = [expected("shape", 0), expected("shape", 0, 0)]
    after = [expected("shape", 0, "ada"), expected("shape", 0, 0, "ada")]
    assert shape.drawn == [before[0], after[0], after[0], before[1], after[1], after[1]]


def test_shapes_and_casts_draw_once_for_an_episode() -> None:
    played("lockstep")
    assert SHAPE.trees_drawn == [expected("trees", 0), expected("trees", 1)]
    assert CAST.drawn == [expected("cast", 0), expected("cast", 1)]


def test_minibatches_are_drawn_for_each_epoch_of_each_iteration() -> None:
    trees = played("lockstep")
    for epoch, cuts in enumerate(UpdateSchedule(2, 2).minibatches(trees, SEED, iteration=5)):
        order = derive_rng(SEED, "minibatch", 5, epoch).permutation(4).tolist()
        assert cuts == [[number] for number in order]
