import pytest

from colearn.contract.types import Node, Observation
from colearn.errors import ConfigError
from colearn.rollout.shapes import Chain, Cross, KaryTree, Parallel

TEAM = ("alice", "bob")


def at(turn, agents, **acted):
    """A node of this turn at which these agents act."""
    return Node(
        index=turn,
        parent=turn - 1 if turn else None,
        path=(0,) * turn,
        state=None,
        observations={agent: Observation("", ()) for agent in agents},
        acted=acted,
    )


def calls(shape, agents, horizon):
    """Generations of one episode without early end."""
    nodes, total = 1, 0
    for turn in range(horizon):
        node = at(turn, agents)
        counts = shape.samples(node)
        total += nodes * sum(counts.values())
        nodes *= len(shape.joint_actions(node, counts))
    return total


def test_a_chain_draws_one_joint_action_per_turn():
    assert Chain().samples(at(3, TEAM)) == {"alice": 1, "bob": 1}
    assert list(Chain().joint_actions(at(0, TEAM), {"alice": 1, "bob": 1})) == [
        {"alice": 0, "bob": 0}
    ]
    assert calls(Chain(), TEAM, 4) == 8
    assert Chain().group_size == 1


def test_parallel_branches_at_the_root_and_nowhere_else():
    shape = Parallel(3)
    assert shape.samples(at(0, TEAM)) == {"alice": 3, "bob": 3}
    assert shape.samples(at(1, TEAM)) == {"alice": 1, "bob": 1}
    assert calls(shape, TEAM, 4) == 2 * 3 * 4
    assert shape.group_size == 3


def test_a_tree_pairs_the_jth_action_of_each_agent_with_the_jth_of_the_others():
    joint = KaryTree(3).joint_actions(at(0, TEAM), {"alice": 3, "bob": 3})
    assert list(joint) == [{"alice": j, "bob": j} for j in range(3)]
    assert KaryTree(3).group_size == 3


def test_a_cross_meets_every_action_with_every_other():
    joint = Cross(2).joint_actions(at(0, TEAM), {"alice": 2, "bob": 2})
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [(action["alice"], action["bob"]) for action in joint] == pairs
    assert calls(Cross(2), TEAM, 2) == 2 * 2 + 4 * 2 * 2
    assert Cross(2).group_size == 2


@pytest.mark.parametrize("shape", [Chain(), Parallel(2), KaryTree(2), Cross(2)])
def test_only_agents_that_act_draw_actions(shape):
    node = at(0, ("bob",))
    counts = shape.samples(node)
    assert list(counts) == ["bob"]
    joint = shape.joint_actions(node, counts)
    assert list(joint) == [{"bob": j} for j in range(counts["bob"])]


@pytest.mark.parametrize("shape", [Chain(), Parallel(2), KaryTree(2), Cross(2)])
def test_every_drawn_action_is_executed(shape):
    node = at(0, TEAM)
    counts = shape.samples(node)
    for agent, count in counts.items():
        assert {joint[agent] for joint in shape.joint_actions(node, counts)} == set(range(count))


@pytest.mark.parametrize("shape", [Parallel, KaryTree, Cross])
def test_no_samples_is_an_error_that_names_the_field(shape):
    with pytest.raises(ConfigError, match=r"^k: .*got 0; set"):
        shape(0)


def test_more_joint_actions_than_a_tree_may_have_are_refused_before_they_are_listed():
    """1,024 ^ 3 would be listed for hours."""
    counts = dict.fromkeys(("alice", "bob", "carol"), 1024)
    with pytest.raises(
        ConfigError, match=r"^algorithm\.rollout\.k: one tree of Cross has more than"
    ):
        Cross(1024).joint_actions(at(0, tuple(counts)), counts)
    assert len(list(Cross(256).joint_actions(at(0, TEAM), dict.fromkeys(TEAM, 256)))) == 65_536
