"""What a rollout costs: generations, joint actions, and tokens run to extend a history."""

from __future__ import annotations

import pytest
from tiny import Notes, cast

from colearn.contract import Request
from colearn.rollout.chain import Chain
from colearn.rollout.cross import Cross
from colearn.rollout.grow import grow
from colearn.rollout.parallel import Parallel
from colearn.rollout.tree import KaryTree

NAMES = ("ada", "ben", "cleo")


@pytest.fixture(scope="module")
def team():
    return cast(NAMES, max_tokens=2)


def roll(team, agents, horizon, shape, items=1, **settings):
    task = Notes(agents=agents, horizon=horizon, items=items, **settings)
    players = {agent: team.players[agent] for agent in task.agents}
    return grow(task, task.items("train"), players, shape, seed=0)


@pytest.mark.parametrize("agents", [1, 2, 3])
@pytest.mark.parametrize("samples", [1, 2, 3, 4])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_a_tree_costs_the_generations_of_proposition_4_3(team, agents, samples, horizon):
    (tree,), counts = roll(team, agents, horizon, KaryTree(samples))
    joint = (
        horizon if samples == 1 else samples * (samples**horizon - 1) // (samples - 1)
    )  # K + K^2 + ... + K^H
    assert counts.generations == agents * joint
    assert counts.joint_actions == len(tree.nodes) - 1 == joint
    assert sum(1 for _ in tree.leaves()) == samples**horizon


def test_a_chain_costs_n_h_generations(team):
    _, counts = roll(team, 2, 4, Chain(), items=3)
    assert (counts.generations, counts.joint_actions) == (3 * 2 * 4, 3 * 4)


def test_parallel_chains_cost_n_k_h_generations(team):
    (tree,), counts = roll(team, 2, 3, Parallel(4))
    assert (counts.generations, counts.joint_actions) == (2 * 4 * 3, 4 * 3)
    assert len(tree.children(0)) == 4


def test_a_cross_executes_every_pairing_of_what_each_agent_draws_once(team):
    (tree,), counts = roll(team, 3, 1, Cross(2))
    assert (counts.generations, counts.joint_actions) == (3 * 2, 2**3)
    drawn = {agent: {n.actions[agent].tokens for n in tree.nodes[1:]} for agent in NAMES}
    assert all(len(tokens) <= 2 for tokens in drawn.values())


def test_sequential_play_generates_for_the_acting_agent_only(team):
    (tree,), counts = roll(team, 2, 4, KaryTree(2), sequential=True)
    assert counts.generations == counts.joint_actions == len(tree.nodes) - 1 == 2 + 4 + 8 + 16


def test_the_tokens_counted_are_those_of_the_actions(team):
    _, chain = roll(team, 2, 3, Chain(), items=2)
    trees, counts = roll(team, 2, 3, Chain(), items=2)
    total = sum(len(a.tokens) for t in trees for n in t.nodes for a in n.actions.values())
    assert counts.tokens == chain.tokens == total


def prefilled(team, run):
    generator = team.generators[id(team.bases["ada"])]
    before = generator.prefilled_tokens
    answer = run()
    return generator.prefilled_tokens - before, answer


@pytest.mark.parametrize("samples", [1, 4])
def test_a_fork_never_prefills_again(team, samples):
    """Every observation once, and the last token of every action that another turn follows."""
    cost, (trees, _) = prefilled(team, lambda: roll(team, 2, 3, KaryTree(samples), items=2))
    expected = 0
    for tree in trees:
        for node in tree.nodes:
            if not node.terminal:
                expected += sum(len(seen.tokens) for seen in node.observations.values())
                expected += len(node.actions)
    assert cost == expected


def test_a_later_turn_prefills_the_new_tokens_and_the_pending_one(team):
    generator = team.generators[id(team.bases["ada"])]
    request = Request(agent="ada", session=None, tokens=tuple(range(10, 40)), seeds=(0,))
    cost, ((first,),) = prefilled(team, lambda: generator.generate([request]))
    assert cost == 30
    request = Request(agent="ada", session=first.session, tokens=(50, 51, 52), seeds=(0,))
    cost, _ = prefilled(team, lambda: generator.generate([request]))
    assert cost == 3 + 1


def test_a_session_is_still_usable_after_it_was_continued(team):
    generator = team.generators[id(team.bases["ada"])]
    opening = Request(agent="ada", session=None, tokens=tuple(range(10, 40)), seeds=(0,))
    ((first,),) = generator.generate([opening])
    following = Request(agent="ada", session=first.session, tokens=(50, 51, 52), seeds=(3, 4))
    once = generator.generate([following])
    again = generator.generate([following])
    assert [s.action for s in once[0]] == [s.action for s in again[0]]
