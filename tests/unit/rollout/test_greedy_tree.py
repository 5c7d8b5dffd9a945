"""AT-GRPO in simultaneous play: candidates are scored agent by agent (Alg. 1, lines 9 to 14), so
that a group's rewards differ by its own agent's actions only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from colearn.contract import (
    ActionRequest,
    Credit,
    DecPOMDP,
    Player,
    TokenAnswer,
)
from colearn.contract.types import Action, Observation, Outcome, Tree
from colearn.methods.advantage.agent_turn_groups import AgentTurn
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import Program
from colearn.rollout.agents.programs import Says
from colearn.rollout.greedy_tree import GreedyTree
from colearn.rollout.grow import Order, grow
from colearn.rollout.shapes import Cross, KaryTree
from colearn.training.learners.packed_rows import actor_rows


class Numbered(Player):
    """Draw k of a prompt is the text "k", one token long."""

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return [TokenAnswer(Action(str(k), (10 + k,), (-1.0,))) for k in range(len(request.seeds))]

    def read(self, observation: Observation, last: Action | None) -> Observation:
        return replace(observation, tokens=(1, 2))


class Pays(DecPOMDP[str, int]):
    """Everybody acts at once in every turn; `pays` says what the joint action is worth."""

    pays = frozenset({"team", "local"})

    def __init__(self, agents: tuple[str, ...], worth: Any, turns: int = 1) -> None:
        self.agents, self.worth, self.horizon = agents, worth, turns
        self.executed: list[tuple[int, ...]] = []

    def items(self, split: str) -> Sequence[str]:
        return ["item"]

    def reset(self, item: str, rng: np.random.Generator) -> int:
        return 0

    def observe(self, state: int, agent: str) -> str:
        return f"turn {state}"

    def step(
        self, state: int, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[int]:
        numbers = tuple(int(actions[agent]) for agent in self.agents)
        self.executed.append(numbers)
        team, local = self.worth(*numbers)
        return Outcome(state=state + 1, reward=team, local_rewards=local)

    def metrics(self, state: int) -> Mapping[str, float]:
        return {}


MIXED = Mixed(alpha=1.0)


def grown(
    task: Pays, k: int, *, credit: Credit = MIXED, order: Order = "lockstep"
) -> tuple[Tree[Any], Any]:
    players = {agent: Numbered() for agent in task.agents}
    shape = GreedyTree(k)
    (tree,), counts = grow(task, ["item"], players, shape, seed=3, credit=credit, order=order)
    return tree, counts


PASSED = [1.0, 0.0, 1.0, 0.0]
"""Share of golden tests that candidate j of the coder passes."""
AGREES = [0.0, 1.0, 0.0, 1.0]
"""Whether the reference passes candidate j of the tester."""


def code(coder: int, tester: int) -> tuple[float, dict[str, float]]:
    """B.2 with the shares that count: r_team = p, coder 0.2 + 0.8 p, tester 0.2 + 0.8 agrees."""
    p = PASSED[coder]
    return p, {"coder": 0.2 + 0.8 * p, "tester": 0.2 + 0.8 * AGREES[tester]}


def advantages(tree: Tree[Any], credit: Credit, agent: str) -> list[float]:
    (advantages,) = AgentTurn()([tree.credited(credit(tree))])
    return [row[agent] for row in advantages if agent in row]


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_a_testers_advantage_is_its_tests_and_not_the_coders_luck(order: Order):
    tree, _ = grown(Pays(("coder", "tester"), code), 4, order=order)
    # the tester's group: 1 + (0.2, 1, 0.2, 1), mean 1.6, deviation 0.4
    assert advantages(tree, MIXED, "tester") == pytest.approx([-1, 1, -1, 1], abs=1e-5)
    assert advantages(tree, MIXED, "coder") == pytest.approx([1, -1, 1, -1], abs=1e-5)


def test_each_agents_own_best_candidate_is_executed():
    tree, _ = grown(Pays(("coder", "tester"), code), 4)
    (executed,) = (node for node in tree.nodes[1:] if not node.cut)
    assert executed.actions["coder"].text in ("0", "2")
    assert executed.actions["tester"].text in ("1", "3")


def worth_of_pair(a: int, b: int) -> tuple[float, dict[str, float]]:
    return [[0.0, 5.0], [1.0, 2.0]][a][b], {}


def test_candidates_meet_the_executed_action_before_them_and_the_first_draw_after_them():
    task = Pays(("a", "b"), worth_of_pair)
    tree, counts = grown(task, 2, credit=SharedReward())
    # a's two with b's draw 0 pay 0 and 1; b's two with a's draw 1 pay 1 and 2
    assert task.executed == [(0, 0), (1, 0), (1, 0), (1, 1)]
    assert [node.candidate_of for node in tree.nodes[1:]] == ["a", "a", "b", "b"]
    assert [node.reward for node in tree.nodes[1:]] == [0, 1, 1, 2]
    assert [node.cut for node in tree.nodes] == [False, True, True, True, False]
    assert advantages(tree, SharedReward(), "a") == pytest.approx([-1, 1], abs=1e-5)
    assert advantages(tree, SharedReward(), "b") == pytest.approx([-1, 1], abs=1e-5)
    assert counts.generations == counts.joint_actions == 4


def sum_of_three(a: int, b: int, c: int) -> tuple[float, dict[str, float]]:
    return 9.0 * a + 3.0 * b + c, {}


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_an_episode_costs_N_T_K_generations_and_as_many_environment_steps(order: Order):
    tree, counts = grown(Pays(("a", "b", "c"), sum_of_three, turns=2), 3, order=order)
    assert counts.generations == counts.joint_actions == 3 * 2 * 3
    assert [node.path for node in tree.nodes if not node.cut] == [(), (8,), (8, 8)]


def test_the_logged_return_is_that_of_the_executed_actions():
    tree, _ = grown(Pays(("a", "b", "c"), sum_of_three, turns=2), 3, credit=SharedReward())
    assert tree.returns(1.0)[0] == 2 * (9 * 2 + 3 * 2 + 2)
    credited = tree.credited(SharedReward()(tree), discount=0.5)
    assert credited.returns_of("b")[0] == 1.5 * 26


def test_every_candidate_is_trained_once_and_no_one_elses_is_read():
    tree, _ = grown(Pays(("a", "b", "c"), sum_of_three, turns=2), 3)
    for agent in tree.agents:
        (row,) = actor_rows(tree, agent)
        spoken = [row.tokens[span.start : span.end] for span in row.spans]
        assert spoken == [(10,), (11,), (12,)] * 2
        # two prompts of two tokens and six candidates; the executed action stands a second time
        # for every agent but the last, whose own candidate it is
        executed = 0 if agent == "c" else 2
        assert len(row.tokens) == 2 * 2 + 6 + executed


def by_program(number: str) -> Program:
    return Program(Says(text=number))


def turns_of_a(a: int, b: int) -> tuple[float, dict[str, float]]:
    return 1.0 * a, {}


def with_program(shape, task: Pays):
    players = {"a": Numbered(), "b": by_program("5")}
    (tree,), counts = grow(task, ["item"], players, shape, seed=3, credit=SharedReward())
    return tree, counts


def test_a_program_at_the_same_turn_says_one_thing_and_costs_no_steps_of_its_own():
    task = Pays(("a", "b"), turns_of_a, turns=2)
    tree, counts = with_program(GreedyTree(3), task)
    assert task.executed == [(0, 5), (1, 5), (2, 5)] * 2
    assert {node.candidate_of for node in tree.nodes[1:]} == {"a"}
    assert counts.joint_actions == 6
    assert tree.returns(1.0)[0] == 4.0


class InTurn(Pays):
    """The program acts at turn 0, the learner at turn 1."""

    def observe(self, state: int, agent: str) -> str | None:
        return "now" if agent == ("b", "a")[state] else None

    def step(
        self, state: int, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[int]:
        return Outcome(state=state + 1, reward=float(actions.get("a", 0)))


@pytest.mark.parametrize("shape", [GreedyTree(3), KaryTree(3), Cross(3)], ids=lambda s: type(s))
def test_where_a_program_acts_alone_nothing_branches_and_one_step_is_paid(shape):
    tree, counts = with_program(shape, InTurn(("a", "b"), turns_of_a, turns=2))
    assert [len(below) for below in tree.below()] == [1, 3, 0, 0, 0]
    assert counts.joint_actions == 1 + 3
    assert counts.generations == 1 + 3


def test_a_candidate_without_a_score_is_not_executed() -> None:
    def first_unscored(a: int) -> tuple[float | None, dict[str, float]]:
        return [None, -1.0, -2.0][a], {}

    tree, _ = grown(Pays(("a",), first_unscored), 3, credit=SharedReward())
    assert [node.actions["a"].text for node in tree.nodes[1:] if not node.cut] == ["1"]


def test_each_agent_breaks_its_ties_by_a_draw_of_its_own() -> None:
    """32 trees, two candidates each: of two fair draws both (0, 1) and (1, 0) come up."""
    players = {agent: Numbered() for agent in ("a", "b")}
    task = Pays(("a", "b"), lambda a, b: (0.0, {}))
    trees, _ = grow(task, ["item"] * 32, players, GreedyTree(2), seed=3)
    executed = [node.actions for tree in trees for node in tree.nodes[1:] if not node.cut]
    pairs = {(actions["a"].text, actions["b"].text) for actions in executed}
    assert pairs == {("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")}


def test_where_only_programs_act_one_round_executes_their_actions() -> None:
    shape, counts, rng = GreedyTree(3), {"ada": 1, "ben": 1}, np.random.default_rng(0)
    at: Any = None  # no node is read
    first = shape.next_round(at, counts, [], rng)
    assert first is not None and list(first.joint_actions) == [{"ada": 0, "ben": 0}]
    credited = replace(first, credits=[{"ada": 1.0, "ben": 1.0}])
    assert shape.next_round(at, counts, [credited], rng) is None
