"""What each joint action is worth to each agent, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from credited import credited
from trees import chain, tree

from colearn.algorithms.magrpo import MAGRPO
from colearn.contract.reward_credit import earned
from colearn.contract.types import Node, Outcome, Sources, Tree
from colearn.errors import ConfigError
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.credit.backward import Backward
from colearn.methods.credit.invocation import Invocation
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.payoff import Payoff
from colearn.methods.credit.shared_reward import SharedReward
from colearn.runs.record.metric_names import of_agent
from colearn.training.evaluation.played import mean_objective, mean_returns

Edges = Mapping[int, Mapping[str, Any]]
"""By node, fields of `Node` that differ."""


def with_edges(given: Tree[Any], edges: Edges) -> Tree[Any]:
    nodes = [replace(node, **edges.get(node.index, {})) for node in given.nodes]
    return replace(given, nodes=tuple(nodes))


def made_from(given: Tree[Any], index: int, agent: str, sources: Sources) -> Tree[Any]:
    """The tree in which an agent's prompt at a node says what it was made from."""
    node: Node[Any] = given.nodes[index]
    shown = {**node.observations, agent: replace(node.observations[agent], made_from=sources)}
    return with_edges(given, {index: {"observations": shown}})


PAID = with_edges(
    chain([1.0, 4.0]),
    {1: {"local_rewards": {"alice": 0.5}}, 2: {"local_rewards": {"alice": -1.0, "bob": 2.0}}},
)
"""The team is paid 1, then 4; alice 0.5, then -1; bob 2 at the end."""


def test_team_credit_pays_everyone_the_joint_reward():
    assert SharedReward()(PAID) == ({}, {"alice": 1.0, "bob": 1.0}, {"alice": 4.0, "bob": 4.0})


def test_mixed_credit_weighs_the_team_by_alpha_and_adds_the_own_reward():
    rewards = Mixed(alpha=0.5)(PAID)
    # 0.5 * 1 + 0.5 and 0.5 * 1; 0.5 * 4 - 1 and 0.5 * 4 + 2
    assert rewards == ({}, {"alice": 1.0, "bob": 0.5}, {"alice": 1.0, "bob": 4.0})
    # at alpha 1 the plain sum (AT-GRPO, Eq. 3)
    assert Mixed()(PAID)[2] == {"alice": 3.0, "bob": 6.0}


def test_a_payoff_is_the_agents_own_and_the_team_does_not_matter():
    assert Payoff()(PAID) == ({}, {"alice": 0.5, "bob": 0.0}, {"alice": -1.0, "bob": 2.0})


def test_what_a_shape_compares_children_by_is_the_credit_of_the_edge():
    outcome = Outcome(state=None, reward=4.0, local_rewards={"alice": -1.0})
    rewards = {
        "team": SharedReward().step(outcome, ("alice", "bob")),
        "mixed": Mixed(alpha=0.25).step(outcome, ("alice", "bob")),
        "payoff": Payoff().step(outcome, ("alice", "bob")),
    }
    assert rewards == {
        "team": {"alice": 4.0, "bob": 4.0},
        "mixed": {"alice": 0.0, "bob": 1.0},
        "payoff": {"alice": -1.0, "bob": 0.0},
    }


def test_returns_and_advantages_differ_by_agent_where_credit_does():
    (episode,) = credited([PAID], 0.5, Payoff())
    # alice 0.5 - 1/2, bob 0 + 2/2
    assert episode.returns_of("alice") == (0.0, 0.0, -1.0)
    assert episode.returns_of("bob") == (1.0, 1.0, 2.0)
    assert RawReturn()([episode])[0] == (
        {},
        {"alice": 0.0, "bob": 1.0},
        {"alice": -1.0, "bob": 2.0},
    )
    values = {"alice": (3.0, 1.0, None), "bob": (3.0, 1.0, None)}
    # 0.5 + 1/2 - 3 and 0 + 1/2 - 3; -1 - 1 and 2 - 1
    assert GAE()([episode], [values])[0][1:] == (
        {"alice": -2.0, "bob": -2.5},
        {"alice": -2.0, "bob": 1.0},
    )


def test_a_tree_without_credit_has_no_credited_returns():
    with pytest.raises(ValueError, match="apply a credit"):
        PAID.returns_of("alice")


def test_the_objective_is_the_credited_return_and_names_agents_that_differ():
    assert mean_objective([PAID], SharedReward()) == {"objective": 5.0}
    metrics = mean_objective([PAID], Payoff())
    assert metrics == {"objective": 0.75, "objective/alice": -0.5, "objective/bob": 2.0}


def test_an_agents_objective_is_read_where_it_is_logged():
    """By its own name where agents differ, by the team's where they are equal."""
    metrics = mean_objective([PAID], Payoff())
    assert (of_agent(metrics, "objective", "alice"), of_agent(metrics, "objective", "bob")) == (
        -0.5,
        2.0,
    )
    assert of_agent(mean_objective([PAID], SharedReward()), "objective", "alice") == 5.0
    assert of_agent({"return": 1.0}, "objective", "alice") is None


def test_the_return_is_the_teams_reward_and_what_an_agent_earns_itself_stands_beside_it():
    metrics = mean_returns([PAID], frozenset({"team", "local"}))
    assert metrics == {"return": 5.0, "return/alice": -0.5, "return/bob": 2.0}
    assert mean_returns([PAID], frozenset({"team"})) == {"return": 5.0}


def test_equal_payoffs_are_logged_by_agent_too():
    even = with_edges(PAID, {2: {"local_rewards": {"alice": 0.0, "bob": 0.5}}})
    metrics = mean_returns([even], frozenset({"local"}))
    assert metrics == {"return": 0.5, "return/alice": 0.5, "return/bob": 0.5}


def test_the_return_of_a_task_without_a_team_is_the_players_mean_payoff():
    metrics = mean_returns([PAID], frozenset({"local"}))
    assert metrics == {"return": 0.75, "return/alice": -0.5, "return/bob": 2.0}


# --- delayed rewards -----------------------------------------------------------------------------


def test_a_delayed_reward_goes_to_the_action_that_earned_it():
    late = with_edges(PAID, {2: {"earned": {(0, "bob"): 8.0}}})
    assert Payoff()(late) == ({}, {"alice": 0.5, "bob": 8.0}, {"alice": -1.0, "bob": 2.0})
    assert Mixed()(late)[1] == {"alice": 1.5, "bob": 9.0}
    assert SharedReward()(late) == SharedReward()(PAID), "the team's credit reads no local reward"


LATE = with_edges(
    tree([(0, 0.0), (0, 0.0), (1, 0.0), (1, 0.0), (3, 0.0), (3, 0.0)]),
    {
        4: {"earned": {(0, "alice"): 6.0}},
        5: {"earned": {(0, "alice"): 8.0, (1, "bob"): 4.0}},
        6: {"earned": {(1, "bob"): 10.0, (2, "bob"): 7.0}},
    },
)
"""Root 0 has children 1 and 2, node 1 has 3 and 4, node 3 has 5 and 6."""


def test_a_delayed_reward_weighs_its_branchs_share_of_the_branches_below_the_action():
    # alice's first action, into 1: 6 in one of two branches, 8 in one of two of one of two
    # bob's second, into 3: 4 and 10 in one of two branches each; his third, into 6: 7 for certain
    assert sorted(earned(LATE)) == [
        (1, "alice", 2.0),
        (1, "alice", 3.0),
        (3, "bob", 2.0),
        (3, "bob", 5.0),
        (6, "bob", 7.0),
    ]
    rewards = Payoff()(LATE)
    assert (rewards[1]["alice"], rewards[3]["bob"], rewards[6]["bob"]) == (5.0, 7.0, 7.0)
    assert sum(reward for edge in rewards for reward in edge.values()) == 19.0


# --- backward through the executed graph ---------------------------------------------------------


def test_backward_credit_adds_an_edges_own_reward_to_what_its_successors_carry():
    # in a chain those who act next are the successors: 1 of the first edge and 4 of the last
    assert Backward()(chain([1.0, 4.0])) == (
        {},
        {"alice": 5.0, "bob": 5.0},
        {"alice": 4.0, "bob": 4.0},
    )


FORK = tree([(0, 0.0), (0, 9.0), (1, 2.0), (1, 6.0)], agents=("alice",))
"""Node 1 has two children that pay 2 and 6; node 2 has none."""


@pytest.mark.parametrize(
    ("aggregate", "first"), [("mean", 4.0), ("max", 6.0), ("min", 2.0), ("sum", 8.0)]
)
def test_backward_credit_aggregates_over_direct_successors_in_every_branch(aggregate, first):
    rewards = Backward(aggregate=aggregate)(FORK)
    assert rewards == ({}, {"alice": first}, {"alice": 9.0}, {"alice": 2.0}, {"alice": 6.0})


def test_an_actions_own_local_reward_is_added_and_not_passed_on():
    own = with_edges(
        FORK, {1: {"local_rewards": {"alice": 0.5}}, 3: {"local_rewards": {"alice": 100.0}}}
    )
    assert Backward()(own)[1] == {"alice": 4.5}
    assert Backward()(own)[3] == {"alice": 102.0}
    late = with_edges(FORK, {4: {"earned": {(0, "alice"): 3.0}}})
    # 4 and half of 3: the branch that pays is one of two
    assert Backward()(late)[1] == {"alice": 5.5}


PIPELINE = chain(
    [0.0, 3.0, 12.0],
    agents=("asks", "reads", "writes"),
    acting={0: ("asks",), 1: ("reads",), 2: ("writes",)},
)
"""Three roles one after another; the last edge pays 12."""


def test_where_prompts_do_not_say_the_successors_act_at_the_very_next_turn():
    # the reader follows the asker, the writer the reader: 12, and 3 + 12 for those before it
    assert Backward()(PIPELINE) == ({}, {"asks": 15.0}, {"reads": 15.0}, {"writes": 12.0})


def test_the_successors_of_an_action_are_those_whose_prompts_hold_its_text():
    # the writer was shown what was asked, not what was read: the reader has no successor
    skipped = made_from(PIPELINE, 2, "writes", ((0, "asks"),))
    # asks: reads by default (its prompt says nothing) and writes; mean of 3 and 12
    assert Backward()(skipped) == ({}, {"asks": 7.5}, {"reads": 3.0}, {"writes": 12.0})
    both = made_from(PIPELINE, 2, "writes", ((0, "asks"), (1, "reads")))
    # reads: 3 + 12; asks: the mean of 15 and 12
    assert Backward()(both) == ({}, {"asks": 13.5}, {"reads": 15.0}, {"writes": 12.0})


def test_a_reward_at_the_end_alone_reaches_every_action_as_in_eq_4():
    last = chain([0.0, 0.0, 12.0], agents=("alice",))
    assert Backward()(last) == ({}, *[{"alice": 12.0}] * 3)


def test_a_prompt_made_from_nothing_has_no_predecessor():
    alone = made_from(made_from(PIPELINE, 1, "reads", ()), 2, "writes", ())
    # every action has the reward of its own edge
    assert Backward()(alone) == ({}, {"asks": 0.0}, {"reads": 3.0}, {"writes": 12.0})


# --- one reward for each call --------------------------------------------------------------------


def test_invocation_credit_is_eq_12_of_unitymas_o():
    given = with_edges(
        tree(
            [(0, 1.0), (1, 2.0), (1, 6.0)],
            agents=("plans", "codes"),
            acting={0: ("plans",), 1: ("codes",)},
        ),
        {
            1: {"local_rewards": {"plans": 0.25}},
            2: {"local_rewards": {"codes": -1.0}, "earned": {(0, "plans"): 3.0}},
        },
    )
    rewards = Invocation(node=2.0, turn=10.0, trajectory=100.0)(given)
    # plans: 2 (0.25 + 3/2) + 10 * 1 + 100 (1 + (2 + 6) / 2)
    # codes: 2 * -1 + 10 * 2 + 100 (1 + 2), then 0 + 10 * 6 + 100 (1 + 6)
    assert rewards == ({}, {"plans": 513.5}, {"codes": 318.0}, {"codes": 760.0})


def test_invocation_credit_is_the_nodes_quality_alone_unless_told_otherwise():
    assert Invocation()(PAID) == Payoff()(PAID)
    assert Invocation(node=0.0, turn=1.0)(PAID) == SharedReward()(PAID)


# --- what a task pays ----------------------------------------------------------------------------


class Task:
    """As far as `check_task` looks."""

    agents = ("alice", "bob")
    program = pays_later = False

    def __init__(self, *pays: str) -> None:
        self.pays = frozenset(pays)


@pytest.mark.parametrize(
    ("credit", "pays", "remedy"), [(Payoff(), "team", "team"), (SharedReward(), "local", "payoff")]
)
def test_credit_that_reads_only_what_a_task_never_pays_is_an_error_with_its_remedy(
    credit, pays, remedy
):
    with pytest.raises(
        ConfigError, match=rf"^algorithm\.credit: .*set algorithm\.credit\.name to {remedy}$"
    ) as caught:
        MAGRPO(credit=credit).check_task(Task(pays))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pays", [("team",), ("local",), ("team", "local")])
def test_mixed_credit_fits_every_task(pays):
    MAGRPO(credit=Mixed()).check_task(Task(*pays))


@pytest.mark.parametrize("credit", [SharedReward(), Payoff()])
def test_a_task_that_pays_both_fits_credit_that_reads_one(credit):
    MAGRPO(credit=credit).check_task(Task("team", "local"))
