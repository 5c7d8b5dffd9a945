"""Random rewards: which pairs of joint actions prove them, and which prove nothing."""

from __future__ import annotations

from dataclasses import replace

from trees import chain, tree

from colearn.training.update.random_rewards import rewards_are_random


def changed(grown, index, **fields):
    """The tree with other fields in one node."""
    nodes = list(grown.nodes)
    nodes[index] = replace(nodes[index], **fields)
    return replace(grown, nodes=tuple(nodes))


def saying(grown, index, **texts):
    """The tree with other texts of these agents' actions into a node."""
    actions = dict(grown.nodes[index].actions)
    for agent, text in texts.items():
        actions[agent] = replace(actions[agent], text=text)
    return changed(grown, index, actions=actions)


def reading(grown, index, **texts):
    """The tree with other texts of these agents' observations at a node."""
    observations = dict(grown.nodes[index].observations)
    for agent, text in texts.items():
        observations[agent] = replace(observations[agent], text=text)
    return changed(grown, index, observations=observations)


def test_one_joint_action_that_earns_two_rewards_is_chance():
    assert not rewards_are_random([chain([1.0, 4.0]), chain([1.0, 4.0])])
    assert rewards_are_random([chain([1.0, 4.0]), chain([2.0, 4.0])])
    assert rewards_are_random([chain([1.0, 4.0]), chain([1.0, 5.0])])


def test_different_joint_actions_may_earn_what_they_like():
    calm, other = chain([1.0, 4.0]), saying(chain([1.0, 9.0]), 2, bob="something else")
    assert not rewards_are_random([calm, other])
    crossed = [saying(chain([r]), 1, alice=a, bob=b) for r, a, b in ((1, "x", "y"), (2, "y", "x"))]
    assert not rewards_are_random(crossed)


def test_after_different_joint_histories_rewards_may_differ():
    """One agent has read or said something else before, even if nobody else noticed."""
    calm, later = chain([1.0, 4.0]), chain([1.0, 9.0])
    assert not rewards_are_random([calm, reading(later, 1, alice="a storm")])
    assert not rewards_are_random([calm, reading(later, 0, bob="a storm")])
    assert not rewards_are_random([calm, saying(later, 1, alice="something else")])


def test_what_the_team_does_not_see_is_chance_to_it():
    """The item and the task's state differ; no agent's text does."""
    hidden = changed(replace(chain([2.0]), item="another"), 0, state="another")
    assert rewards_are_random([chain([1.0]), hidden])


def test_rewards_of_one_agent_and_delayed_ones_count():
    calm = chain([1.0])
    assert rewards_are_random([calm, changed(calm, 1, local_rewards={"bob": 1.0})])
    assert rewards_are_random([calm, changed(calm, 1, earned={(0, "bob"): 1.0})])


def test_branches_of_one_tree_are_compared_too():
    twins = tree([(0, 1.0), (0, 2.0)])
    assert not rewards_are_random([twins])
    first = {agent: action.text for agent, action in twins.nodes[1].actions.items()}
    assert rewards_are_random([saying(twins, 2, **first)])
