"""MHGPO's groups (Algorithms 2 to 5) on a scripted team of three roles, by hand.

Role x answers x0, x1, ..., likewise y and z, in the order in which they are asked. The final reward
is 0.1 for each number of x, 0.01 of y, 0.001 of z on the way: branch (x1, y2, z3) earns 0.123.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from colearn.algorithms.mhgpo import MHGPO, MHGPOIndependent, MHGPORoundRobin
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.advantage.heterogeneous import Heterogeneous
from colearn.methods.credit.backward import Backward
from colearn.programs.workflow import Workflow
from colearn.rollout.agents import Program
from colearn.rollout.forks import ForkOnFirst, Independent, RoundRobin
from colearn.rollout.grow import grow

WEIGHT = {"x": 0.1, "y": 0.01, "z": 0.001}


class Pipeline(Workflow[int]):
    """x, then y, then z; an answer of y with an odd number is penalised."""

    agents = ("x", "y", "z")
    horizon = 3
    measures = ("worth",)

    def items(self, split):
        return [0, 1, 2, 3]

    async def run(self, team, item):
        first = await team.x("go")
        second = await team.y(first)
        if int(second[1:]) % 2:
            team.reward(-0.5, to=second)
        third = await team.z(second)
        team.reward(sum(WEIGHT[said[0]] * int(said[1:]) for said in (first, second, third)))


class Numbered:
    """Says its seat and how often it was asked before."""

    def __init__(self):
        self.asked = Counter()

    def act(self, view):
        number = self.asked[view.seat]
        self.asked[view.seat] += 1
        return f"{view.seat}{number}"


def sampled(algorithm, items: Sequence[int] = (0,)):
    """The credited trees of an algorithm's parts, and how many answers they cost."""
    parts = algorithm.checked_parts()
    players = dict.fromkeys(Pipeline.agents, Program(Numbered()))
    trees, counts = grow(Pipeline(), items, players, parts.rollout, seed=0, credit=parts.credit)
    return parts.credited(trees), counts.generations


def told(episodes: Sequence[Tree], pair) -> str:
    """What was said in an action."""
    return episodes[pair.episode].nodes[pair.node].actions[pair.agent].text


def groups(algorithm, episodes) -> list[set[str]]:
    by_pair = algorithm.advantage.groups(episodes)
    return [{told(episodes, pair) for pair in group} for group in by_pair]


def worths(algorithm, episodes) -> dict[str, float]:
    compared = algorithm.advantage.groups(episodes)
    return {told(episodes, pair): round(pair.worth, 6) for group in compared for pair in group}


def test_fork_on_first_compares_each_role_over_the_branches():
    algorithm = MHGPO(rollout=ForkOnFirst(k=3))
    episodes, generations = sampled(algorithm)
    assert groups(algorithm, episodes) == [
        {"x0", "x1", "x2"},
        {"y0", "y1", "y2"},
        {"z0", "z1", "z2"},
    ]
    assert generations == 3 * 3


def test_rewards_go_backward_and_a_penalty_stays_where_it_was_earned():
    algorithm = MHGPO(rollout=ForkOnFirst(k=2))
    episodes, _ = sampled(algorithm)
    assert worths(algorithm, episodes) == {
        **{"x0": 0.0, "y0": 0.0, "z0": 0.0},
        **{"x1": 0.111, "y1": 0.111 - 0.5, "z1": 0.111},
    }


def test_answer_groups_are_the_trees_own_with_the_prompts_that_were_answered():
    algorithm = MHGPO(rollout=ForkOnFirst(k=2))
    episodes, _ = sampled(algorithm, items=(0, 1))
    groups = algorithm.advantage.answer_groups(episodes)
    first = [(group.agent, group.prompts, group.answers) for group in groups[:3]]
    assert first == [
        ("x", ("go", "go"), ("x0", "x1")),
        ("y", ("x0", "x1"), ("y0", "y1")),
        ("z", ("y0", "y1"), ("z0", "z1")),
    ]
    assert len(groups) == 6


def test_answers_regrouped_over_the_batch_are_no_answer_group():
    algorithm = MHGPORoundRobin(rollout=RoundRobin(k=2, probabilities={"x": 0, "y": 0, "z": 1}))
    episodes, _ = sampled(algorithm, items=(0, 1, 2, 3))
    assert len(algorithm.advantage.groups(episodes)) > 4
    assert [group.agent for group in algorithm.advantage.answer_groups(episodes)] == ["z"] * 4


def test_an_advantage_is_the_distance_from_the_group_in_deviations():
    algorithm = MHGPO(rollout=ForkOnFirst(k=2))
    episodes, _ = sampled(algorithm)
    (advantages,) = algorithm.advantage(episodes)
    said = {a.text: advantages[n.index][s] for n in episodes[0].nodes for s, a in n.actions.items()}
    assert said == pytest.approx(
        {"x0": -1, "x1": 1, "y0": 1, "y1": -1, "z0": -1, "z1": 1}, abs=1e-3
    )


def test_independent_sampling_keeps_the_forked_answers_of_each_role_alone():
    algorithm = MHGPOIndependent(rollout=Independent(k=2))
    episodes, generations = sampled(algorithm)
    assert groups(algorithm, episodes) == [{"x0", "x1"}, {"y2", "y3"}, {"z4", "z5"}]
    trained = [agent for tree in algorithm.advantage(episodes) for node in tree for agent in node]
    assert Counter(trained) == {"x": 2, "y": 2, "z": 2}
    assert generations == (2 + 2 + 2) + (1 + 2 + 2) + (1 + 1 + 2)


def test_a_reward_before_a_fork_is_the_mean_over_its_branches():
    algorithm = MHGPORoundRobin(
        rollout=RoundRobin(k=2, probabilities={"z": 1.0}),
        advantage=Heterogeneous(ungrouped="same_fork"),
    )
    episodes, _ = sampled(algorithm, (0, 1))
    # x0 y0 {z0, z1} and x1 y1 {z2, z3}
    assert worths(algorithm, episodes) == {
        **{"z0": 0.0, "z1": 0.001, "z2": 0.112, "z3": 0.113},
        **{"x0": 0.0005, "x1": 0.1125, "y0": 0.0005, "y1": 0.1125 - 0.5},
    }


def test_an_answer_that_no_tree_of_the_same_fork_has_too_has_no_advantage():
    algorithm = MHGPORoundRobin(
        rollout=RoundRobin(k=2, probabilities={"z": 1.0}),
        advantage=Heterogeneous(ungrouped="same_fork"),
    )
    episodes, _ = sampled(algorithm)  # x0 y0 {z0, z1}
    trained = [agent for tree in algorithm.advantage(episodes) for node in tree for agent in node]
    assert Counter(trained) == {"z": 2}


def test_round_robin_deals_single_answers_of_the_batch_into_groups():
    algorithm = MHGPORoundRobin(
        rollout=RoundRobin(k=2, probabilities={"y": 1.0}),
        advantage=Heterogeneous(ungrouped="shuffle", size=3),
    )
    episodes, generations = sampled(algorithm, (0, 1, 2, 3))
    answers = groups(algorithm, episodes)
    own = [{f"{role}{2 * n}", f"{role}{2 * n + 1}"} for n in range(4) for role in ("y", "z")]
    assert answers[:8] == own
    (dealt,) = answers[8:]
    assert len(dealt) == 3 and dealt < {"x0", "x1", "x2", "x3"}
    assert generations == 4 * (1 + 2 + 2)
    assert groups(algorithm, episodes) == answers


def test_singles_are_left_out_unless_asked_for():
    algorithm = MHGPORoundRobin(
        rollout=RoundRobin(k=2, probabilities={"y": 1.0}), advantage=Heterogeneous()
    )
    episodes, _ = sampled(algorithm)
    assert groups(algorithm, episodes) == [{"y0", "y1"}, {"z0", "z1"}]
    (advantages,) = algorithm.advantage(episodes)
    assert not any("x" in node for node in advantages)


def test_round_robin_forks_by_the_probabilities_and_costs_what_they_say():
    """The paper's 0.7, 0.1, 0.2 with G = 4. A fork at x, y or z costs 12, 9 or 6 answers."""
    shape = RoundRobin(k=4, probabilities={"x": 0.7, "y": 0.1, "z": 0.2})
    rng = np.random.default_rng(0)
    drawn = Counter(shape.trees(0, ("x", "y", "z"), rng)[0].agent for _ in range(4000))
    assert {a: n / 4000 for a, n in drawn.items()} == pytest.approx(
        {"x": 0.7, "y": 0.1, "z": 0.2}, abs=0.03
    )
    forks = [RoundRobin(k=4, probabilities={agent: 1.0}) for agent in ("x", "y", "z")]
    assert [sampled(MHGPORoundRobin(rollout=fork))[1] for fork in forks] == [12, 9, 6]


def test_round_robin_forks_anywhere_alike_where_nothing_is_said():
    rng = np.random.default_rng(0)
    drawn = Counter(RoundRobin().trees(0, ("x", "y"), rng)[0].agent for _ in range(400))
    assert drawn["x"] / 400 == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("chances", [{"x": 0.5}, {"x": 1.5, "y": -0.5}])
def test_probabilities_add_up_to_one(chances):
    with pytest.raises(ConfigError, match="add up to 1"):
        RoundRobin(probabilities=chances)


def test_thirds_may_be_written_to_seven_places():
    """They add up to 0.9999999, which is near enough to 1 for a person and not for numpy."""
    shape = RoundRobin(probabilities=dict.fromkeys("xyz", 0.3333333))
    (fork,) = shape.trees(0, ("x", "y", "z"), np.random.default_rng(0))
    assert fork.agent in ("x", "y", "z")


def test_an_unknown_agent_in_the_probabilities_is_named():
    shape = RoundRobin(probabilities={"w": 1.0})
    with pytest.raises(ConfigError, match="no agent 'w'; there is x, y, z"):
        shape.trees(0, ("x", "y", "z"), np.random.default_rng(0))


class Again(Pipeline):
    """x is asked twice, y once in between."""

    async def run(self, team, item):
        first = await team.x("go")
        await team.x(await team.y(first))
        team.reward(0.1)


def grown(shape):
    players = dict.fromkeys(Pipeline.agents, Program(Numbered()))
    trees, _ = grow(Again(), [0], players, shape, seed=0)
    return [tree.credited(Backward()(tree), discount=0.0) for tree in trees]


def test_a_role_that_acts_twice_is_compared_at_each_of_its_occasions():
    episodes = grown(ForkOnFirst(k=2))
    compared = Heterogeneous().groups(episodes)
    said = [{told(episodes, pair) for pair in group} for group in compared]
    assert said == [{"x0", "x1"}, {"y0", "y1"}, {"x2", "x3"}]


def test_a_fork_is_where_the_agent_acts_first_and_nowhere_later():
    (tree,) = grown(RoundRobin(k=2, probabilities={"x": 1.0}))
    assert [len(below) for below in tree.below()] == [2, 1, 1, 1, 1, 0, 0]
