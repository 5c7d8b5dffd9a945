"""A chain that forks where a critic was surprised: which nodes, at which cost, and the trees."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiny import Notes

from colearn.contract import ActionRequest, Player, TokenAnswer, View
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.errors import ConfigError
from colearn.rollout.agents import Program
from colearn.rollout.forked_chain import ForkedChain
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain


class Numbers(Player):
    """Says a number that its seed determines."""

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return [TokenAnswer(Action(str(seed))) for seed in request.seeds]


class Same:
    """A program."""

    def act(self, view: View) -> str:
        return "same"


def said(tree: Tree[Any]) -> list[dict[str, str]]:
    return [{agent: a.text for agent, a in node.actions.items()} for node in tree.nodes]


def visited(turns: int, programs: frozenset[str] = frozenset()) -> list[Node[Any]]:
    """The nodes of a chain of `turns` joint actions."""
    return [
        Node(
            index=turn,
            parent=turn - 1 if turn else None,
            path=(0,) * turn,
            state=None,
            observations={agent: Observation("") for agent in ("ada", "ben")},
            programs=programs,
        )
        for turn in range(turns)
    ]


def chosen(
    shape: ForkedChain, unsure: Sequence[float | None], *, seed: int = 0, **settings: Any
) -> list[int]:
    rng = np.random.default_rng(seed)
    return list(shape.further(visited(len(unsure), **settings), unsure, rng))


# --- which nodes ---------------------------------------------------------------------------------


def test_the_most_surprising_nodes_fork_until_the_budget_is_spent() -> None:
    """K = 3, T = 4: forks at turns 0 to 3 cost 8, 6, 4, 2."""
    surprise = [0.1, 0.9, 0.2, 0.5]
    assert chosen(ForkedChain(k=3, budget=6), surprise) == [1]
    assert chosen(ForkedChain(k=3, budget=8), surprise) == [1, 3]
    assert chosen(ForkedChain(k=3, budget=12), surprise) == [1, 2, 3]
    assert chosen(ForkedChain(k=3, budget=20), surprise) == [0, 1, 2, 3]


def test_a_node_that_costs_more_than_is_left_gives_way_to_the_next() -> None:
    """K = 2, T = 3: forks cost 3, 2, 1."""
    assert chosen(ForkedChain(k=2, budget=2), [0.9, 0.1, 0.5]) == [2]


def test_of_equal_surprises_the_earlier_node_forks() -> None:
    assert chosen(ForkedChain(k=2, budget=2), [0.5, 0.5, 0.5]) == [1]


def test_a_node_without_a_value_does_not_fork() -> None:
    assert chosen(ForkedChain(k=2, budget=99), [None, 0.0, None]) == [1]


def test_a_node_where_only_programs_act_does_not_fork() -> None:
    shape = ForkedChain(k=2, budget=99)
    assert chosen(shape, [1.0], programs=frozenset({"ada", "ben"})) == []
    assert chosen(shape, [1.0], programs=frozenset({"ada"})) == [0]


def test_at_a_forked_node_the_others_draw_the_rest_of_the_K_actions_and_programs_one() -> None:
    further = ForkedChain(k=4, budget=99).further(
        visited(1, frozenset({"ada"})), [1.0], np.random.default_rng(0)
    )
    assert further == {0: {"ada": 1, "ben": 3}}


def test_random_forks_need_no_critic_and_fall_on_every_node_alike() -> None:
    """K = 2, T = 3, budget 3: 0 alone, or 1 and 2. Of the orders 012, 021, 102, 120, 201, 210 the
    first two begin with 0; so 0 is drawn in a third of the cases."""
    shape = ForkedChain(k=2, budget=3, where="random")
    assert not shape.reads_critic
    drawn = [chosen(shape, [None] * 3, seed=seed) for seed in range(300)]
    assert {tuple(one) for one in drawn} == {(0,), (1, 2)}
    assert 70 <= drawn.count([0]) <= 130
    assert chosen(shape, [None] * 3, seed=7) == chosen(shape, [None] * 3, seed=7)


def test_a_chain_that_never_began_has_no_node_to_fork() -> None:
    assert chosen(ForkedChain(where="random"), []) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 1}, r"^k: must lie in 2 to 1024, got 1; 4 is usual$"),
        (
            {"k": 4, "budget": 2},
            r"^budget: 2 joint actions hold no fork, which has k - 1 = 3 or more; raise it, or ",
        ),
        ({"where": "entropy"}, r"^where: unknown 'entropy'; use surprise or random$"),
    ],
)
def test_a_setting_that_does_not_fit_is_one_line(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ForkedChain(**settings)


# --- trees ---------------------------------------------------------------------------------------


def at_turn(turn: int) -> Any:
    """An uncertainty that is 1 at this turn and 0 elsewhere."""
    return lambda trees: [
        {node.path: float(node.turn == turn) for node in tree.nodes} for tree in trees
    ]


def grown(shape: Any, **settings: Any) -> Any:
    task = Notes(horizon=4, items=2)
    return grow(
        task, task.items("train"), dict.fromkeys(task.agents, Numbers()), shape, seed=3, **settings
    )


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_a_fork_adds_branches_to_the_chain_and_leaves_it_as_it_was(order: Any) -> None:
    """K = 3 at turn 2 of 4: two further branches of two joint actions each."""
    shape = ForkedChain(k=3, budget=4)
    trees, counts = grown(shape, uncertainty=at_turn(2), order=order)
    chains, _ = grown(Chain(), order=order)
    paths = [(), (0,), (0, 0), *((0, 0, k) for k in range(3)), *((0, 0, k, 0) for k in range(3))]
    for tree, chain in zip(trees, chains, strict=True):
        assert [node.path for node in tree.nodes] == paths
        trunk = [
            one for node, one in zip(tree.nodes, said(tree), strict=True) if not any(node.path)
        ]
        assert trunk == said(chain)
        first = [node.actions["ada"].text for node in tree.nodes if node.turn == 3]
        assert len(set(first)) == 3
    assert counts.joint_actions == 2 * (4 + 4)
    assert counts.generations == 2 * counts.joint_actions


def test_each_turn_of_the_chains_and_each_of_the_branches_has_its_response_time() -> None:
    _, counts = grown(ForkedChain(k=3, budget=4), uncertainty=at_turn(2))
    assert len(counts.response_seconds) == 4 + 2


def test_a_branch_continues_from_the_state_of_its_own_node() -> None:
    """The task tells ada the length of her last note."""
    (tree, _), _ = grown(ForkedChain(k=2, budget=3), uncertainty=at_turn(1))
    branch = [node for node in tree.nodes if node.path[:2] == (0, 1)]
    assert [node.turn for node in branch] == [2, 3, 4]
    for node in branch[:2]:
        note = node.actions["ada"].text
        assert node.observations["ada"].text == f"{len(note)} letters"


def test_further_actions_have_seeds_of_their_own_where_not_all_were_executed() -> None:
    requested: list[int] = []

    class Counting(Numbers):
        async def act(self, request: ActionRequest) -> list[TokenAnswer]:
            requested.extend(request.seeds)
            return await super().act(request)

    class Wasteful(ForkedChain):
        """Draws two actions and executes the first."""

        def samples(self, at: Any) -> Any:
            return dict.fromkeys(at.acting, 2)

        def joint_actions(self, at: Any, counts: Any) -> Any:
            return [dict.fromkeys(counts, 0)]

    task = Notes(horizon=2, items=1)
    grow(
        task, task.items("train"), dict.fromkeys(task.agents, Counting()), Wasteful(k=2, budget=2),
        seed=3, uncertainty=at_turn(0),
    )  # fmt: skip
    assert len(requested) == 2 * (2 + 2 + 1 + 2)  # agents; both turns, a further one, its branch
    assert len(set(requested)) == len(requested)


def test_a_forest_of_shapes_that_read_the_critic_has_to_say_so() -> None:
    class Forest(Chain):
        def trees(self, item: Any, agents: Any, rng: Any) -> Any:
            return [ForkedChain()]

    with pytest.raises(ConfigError, match=r"^rollout.trees: Forest plants a ForkedChain that"):
        grown(Forest(), uncertainty=at_turn(0))


def test_both_orders_and_any_wave_grow_the_same_trees() -> None:
    shape = ForkedChain(k=3, budget=8)
    ways = itertools.product(["lockstep", "free"], [None, 1])
    trees = [
        [said(tree) for tree in grown(shape, uncertainty=at_turn(1), order=order, at_once=wave)[0]]
        for order, wave in ways
    ]
    assert all(one == trees[0] for one in trees[1:])


def test_the_critic_is_asked_once_and_of_whole_chains() -> None:
    asked: list[list[int]] = []

    def uncertainty(trees: Sequence[Tree[Any]]) -> list[dict[tuple[int, ...], float]]:
        asked.append([len(tree.nodes) for tree in trees])
        return [{} for _ in trees]

    trees, counts = grown(ForkedChain(), uncertainty=uncertainty)
    assert asked == [[5, 5]]
    assert [len(tree.nodes) for tree in trees] == [5, 5]
    assert counts.joint_actions == 8


def test_without_a_critic_only_random_forks_grow() -> None:
    with pytest.raises(TypeError, match=r"^ForkedChain needs a critic's uncertainty$"):
        grown(ForkedChain())
    trees, _ = grown(ForkedChain(k=2, budget=1, where="random"))
    assert [len(tree.nodes) for tree in trees] == [6, 6]


def test_a_program_acts_once_in_each_further_branch() -> None:
    task = Notes(horizon=2, items=1)
    players = {"ada": Numbers(), "ben": Program(Same())}
    (tree,), counts = grow(
        task, task.items("train"), players, ForkedChain(k=3, budget=4), seed=3,
        uncertainty=at_turn(0),
    )  # fmt: skip
    first = [node for node in tree.nodes if node.turn == 1]
    assert len({node.actions["ada"].text for node in first}) == 3
    assert {node.actions["ben"].text for node in first} == {"same"}
    assert counts.generations == 3 * 2 + 1 + 3 + 1
