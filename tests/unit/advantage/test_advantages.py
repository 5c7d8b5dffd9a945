import numpy as np
import pytest
from credited import credited
from trees import chain, tree

from colearn.errors import ConfigError
from colearn.methods.advantage.expectile import expectile, weighted
from colearn.methods.advantage.finish import normalized
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.group_baseline import (
    GroupExpectile,
    GroupMax,
    GroupMean,
    LeaveOneOut,
)
from colearn.methods.advantage.heterogeneous import Heterogeneous
from colearn.methods.advantage.q_value import QValue
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.advantage.self_play import RoleBaseline
from colearn.methods.advantage.self_play_groups import (
    equal_trajectories,
    next_own,
    own_turn,
    summed,
    turn_rewards,
)
from colearn.methods.advantage.token_gae import TokenGAE
from colearn.methods.advantage.turn_weights import path_weights
from colearn.rollout.shapes import Parallel

FORK = tree([(0, 1.0), (0, 3.0), (1, 2.0), (1, 6.0), (2, 0.0), (2, 4.0)])
"""Two joint actions at the root, two after each: r = 1 (2, 6) and 3 (0, 4)."""
FORK_VALUES = (5.0, 3.0, 1.0, None, None, None, None)


def team(values):
    return {"alice": values, "bob": values}


def of(advantages, agent="alice"):
    return [node[agent] for node in advantages if agent in node]


def test_returns_follow_the_recursion_over_children():
    # 1 + (2 + 6) / 4 = 3, 3 + (0 + 4) / 4 = 4, root (3 + 4) / 2
    assert FORK.returns(0.5) == (3.5, 3.0, 4.0, 2.0, 6.0, 0.0, 4.0)


# --- with a critic -----------------------------------------------------------------------------


def test_the_td_error_of_each_edge_is_its_own():
    advantages = GAE()(credited([FORK], 0.5), [team(FORK_VALUES)])[0]
    assert advantages[0] == {}
    # 1 + 3/2 - 5, 3 + 1/2 - 5, then r - V with nothing after the last turn
    assert of(advantages) == [-2.5, -1.5, -1.0, 3.0, -1.0, 3.0]
    assert of(advantages, "bob") == of(advantages)


def test_the_td_target_is_the_mean_over_the_edges_of_a_node():
    targets = GAE().targets(credited([FORK], 0.5), [team(FORK_VALUES)])[0]["alice"]
    # (2.5 + 3.5) / 2, (2 + 6) / 2, (0 + 4) / 2
    assert list(targets) == [3.0, 4.0, 2.0, None, None, None, None]


def test_targets_may_be_whole_returns_while_advantages_bootstrap():
    part, told = GAE(target_lam=1.0), [team(FORK_VALUES)]
    assert part(credited([FORK], 0.5), told) == GAE()(credited([FORK], 0.5), told)
    # FORK.returns: (3 + 4) / 2 at the root, then (2 + 6) / 2 and (0 + 4) / 2
    targets = part.targets(credited([FORK], 0.5), told)[0]["alice"]
    assert list(targets) == [3.5, 4.0, 2.0, None, None, None, None]


def test_the_clip_clamps_the_advantage_and_leaves_the_target():
    part = GAE(clip=2.0)
    assert of(part(credited([FORK], 0.5), [team(FORK_VALUES)])[0]) == [
        -2.0,
        -1.5,
        -1.0,
        2.0,
        -1.0,
        2.0,
    ]
    episodes, values = credited([FORK], 0.5), [team(FORK_VALUES)]
    assert part.targets(episodes, values) == GAE().targets(episodes, values)


def test_a_value_read_after_the_end_does_not_enter():
    ended = chain([1.0])
    assert of(GAE()(credited([ended]), [team((0.5, 99.0))])[0]) == [0.5]


def test_two_steps_look_one_turn_further():
    line = chain([1.0, 2.0, 4.0])
    values = [team((10.0, 20.0, 30.0, None))]
    # 1 + 2/2 + 30/4 - 10; 2 + 4/2 - 20; 4 - 30
    assert of(GAE(lam=1.0, steps=2)(credited([line], 0.5), values)[0]) == [
        -0.5,
        -16.0,
        -26.0,
    ]
    targets = GAE(lam=1.0, steps=2).targets(credited([line], 0.5), values)[0]["alice"]
    assert list(targets) == [9.5, 4.0, 4.0, None]


def test_a_trace_cut_after_n_steps_mixes_the_returns_of_up_to_n_steps():
    line = chain([1.0, 2.0, 4.0, 8.0])
    values = [team((10.0, 20.0, 30.0, 40.0, None))]
    # from the root: G1 = 1 + 20/2 = 11, G2 = 1 + 2/2 + 30/4 = 9.5, G3 = 1 + 1 + 4/4 + 40/8 = 8;
    # truncated at 2: G1/2 + G2/2 - 10, at 3: G1/2 + G2/4 + G3/4 - 10
    for steps, first in ((2, 0.25), (3, -0.125)):
        part = GAE(lam=0.5, steps=steps)
        advantages = of(part(credited([line], 0.5), values)[0])
        assert advantages[0] == first
        # the last two turns have no more steps to look at: 4 + (40/2 + 8/2)/2 - 30 and 8 - 40
        assert advantages[2:] == [-14.0, -32.0]
        targets = part.targets(credited([line], 0.5), values)[0]["alice"]
        assert targets[0] == 10.0 + first


def test_one_step_is_the_td_error_and_many_are_monte_carlo():
    values = [team(FORK_VALUES)]
    episodes = credited([FORK], 0.5)
    assert GAE(lam=1.0, steps=1)(episodes, values) == GAE()(episodes, values)
    for n in (2, 7):
        advantages = GAE(lam=1.0, steps=n)(episodes, values)
        assert advantages == GAE(lam=1.0)(episodes, values)


def test_the_monte_carlo_advantage_is_the_return_minus_the_value():
    advantages = GAE(lam=1.0)(credited([FORK], 0.5), [team(FORK_VALUES)])[0]
    assert of(advantages) == [3.0 - 5, 4.0 - 5, 2.0 - 3, 6.0 - 3, 0.0 - 1, 4.0 - 1]
    targets = GAE(lam=1.0).targets(credited([FORK], 0.5), [team(FORK_VALUES)])[0]["alice"]
    assert list(targets)[:3] == [3.5, 4.0, 2.0]


def test_a_trace_adds_the_mean_of_the_childrens_advantages():
    advantages = GAE(lam=0.5)(credited([FORK], 0.5), [team(FORK_VALUES)])[0]
    # deltas -2.5 and -1.5, each plus 1/4 of the mean of (-1, 3)
    assert of(advantages) == [-2.25, -1.25, -1.0, 3.0, -1.0, 3.0]
    targets = GAE(lam=0.5).targets(credited([FORK], 0.5), [team(FORK_VALUES)])[0]["alice"]
    assert list(targets)[:3] == [5.0 - 1.75, 3.0 + 1.0, 1.0 + 1.0]


TURNS = chain([1.0, 2.0, 4.0], acting={0: ("alice",), 1: ("bob",), 2: ("alice",)})
"""Alice, then Bob, then Alice."""
TURN_VALUES = {"alice": (10.0, None, 30.0, None), "bob": (None, 20.0, None, None)}


def test_a_decentral_critic_looks_past_turns_of_others():
    advantages = GAE()(credited([TURNS], 0.5), [TURN_VALUES])[0]
    # alice 1 + 2/2 + 30/4 - 10 and 4 - 30; bob 2 + 4/2 - 20: the rest of the episode
    assert advantages == ({}, {"alice": -0.5}, {"bob": -16.0}, {"alice": -26.0})
    targets = GAE().targets(credited([TURNS], 0.5), [TURN_VALUES])[0]
    assert list(targets["alice"]) == [9.5, None, 4.0, None]
    assert list(targets["bob"]) == [None, 4.0, None, None]


def test_lambda_counts_the_agents_own_decisions():
    advantages = GAE(lam=0.5)(credited([TURNS], 0.5), [TURN_VALUES])[0]
    # alice's next decision is two turns on: -0.5 + 0.5 * 0.5^2 * -26
    assert advantages[1]["alice"] == -3.75
    full = GAE(lam=1.0)(credited([TURNS], 0.5), [TURN_VALUES])[0]
    assert full[1]["alice"] == TURNS.returns(0.5)[1] - 10.0


def test_two_steps_count_the_agents_own_decisions():
    advantages = GAE(lam=1.0, steps=2)(credited([TURNS], 0.5), [TURN_VALUES])[0]
    assert advantages[1]["alice"] == TURNS.returns(0.5)[1] - 10.0


def test_a_value_at_every_turn_makes_the_td_error_that_of_eq_4():
    joint = (10.0, 20.0, 30.0, None)
    advantages = GAE()(credited([TURNS], 0.5), [team(joint)])[0]
    assert advantages[1] == {"alice": 1.0 + 10.0 - 10.0}
    assert advantages[2] == {"bob": 2.0 + 15.0 - 20.0}


def test_a_cut_branch_is_worth_what_the_critic_says():
    cut = tree([(0, 1.0), (0, 2.0), (1, 4.0)], cut=(2,))
    values = [team((1.0, 2.0, 8.0, None))]
    for part in (
        GAE(),
        GAE(lam=0.5),
        GAE(lam=1.0, steps=3),
        GAE(lam=1.0),
    ):
        assert of(part(credited([cut]), values)[0])[1] == 2.0 + 8.0 - 1.0
        assert part.targets(credited([cut]), values)[0]["alice"][2] == 8.0


def test_agents_without_a_critic_get_no_advantage():
    advantages = GAE()(credited([chain([1.0])]), [{"alice": (0.25, None)}])[0]
    assert advantages == ({}, {"alice": 0.75})


def test_normalising_takes_all_actions_of_an_agent_in_the_call():
    trees = [chain([1.0]), chain([3.0])]
    values = [{"alice": (0.0, None), "bob": (0.0, None)}, {"alice": (0.0, None)}]
    first, second = GAE(normalize=True)(credited(trees), values)
    assert first[1]["alice"] == pytest.approx(-1.0, abs=1e-5)
    assert second[1] == {"alice": pytest.approx(1.0, abs=1e-5)}
    assert first[1]["bob"] == 1.0, "a lone action keeps its advantage"


def test_the_q_value_is_its_own_advantage_and_its_target_is_sarsas():
    values = [team((None, 5.0, 7.0, 1.0, 3.0, 2.0, 8.0))]
    part = QValue()
    assert of(part(credited([FORK], 0.5), values)[0]) == [5.0, 7.0, 1.0, 3.0, 2.0, 8.0]
    # 1 + (1 + 3) / 4, 3 + (2 + 8) / 4, then the reward alone
    targets = part.targets(credited([FORK], 0.5), values)[0]["alice"]
    assert list(targets) == [None, 2.0, 5.5, 2.0, 6.0, 0.0, 4.0]


def test_the_q_baseline_is_the_mean_over_siblings():
    values = [team((None, 5.0, 7.0, 1.0, 3.0, 2.0, 8.0))]
    part = QValue(baseline="siblings")
    assert of(part(credited([FORK]), values)[0]) == [-1.0, 1.0, -1.0, 1.0, -3.0, 3.0]
    assert part.minimum_group == 2
    assert QValue().minimum_group == 1


def test_q_targets_look_past_turns_of_others():
    values = {"alice": (None, 6.0, None, 5.0), "bob": (None, None, 9.0, None)}
    targets = QValue().targets(credited([TURNS], 0.5), [values])[0]
    # alice 1 + (2 + 5/2) / 2 and 4; bob 2 + 4/2
    assert list(targets["alice"]) == [None, 3.25, None, 4.0]
    assert list(targets["bob"]) == [None, None, 4.0, None]


def test_a_cut_branchs_q_is_its_own_target():
    """Only the first child goes on: 1 + 7 / 2. The reward 2 alone is for episodes that ended."""
    cut = tree([(0, 1.0), (0, 2.0), (1, 4.0)], cut=(2,))
    targets = QValue().targets(credited([cut], 0.5), [team((None, 5.0, 8.0, 7.0))])[0]["alice"]
    assert list(targets) == [None, 4.5, 8.0, 4.0]


def test_values_are_asked_for():
    for part, kind in ((GAE(), "v"), (QValue(), "q")):
        assert part.reads == kind
        with pytest.raises(TypeError, match="needs the critic's values"):
            part(credited([FORK]))


# --- with a group ------------------------------------------------------------------------------

ROW = tree([(0, 1.0), (0, 2.0), (0, 3.0), (0, 6.0)])


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (RawReturn(), [1.0, 2.0, 3.0, 6.0]),
        (RawReturn(clip=2.5), [1.0, 2.0, 2.5, 2.5]),
        (GroupMean(), [-2.0, -1.0, 0.0, 3.0]),
        (LeaveOneOut(), [-8 / 3, -4 / 3, 0.0, 4.0]),
        (GroupMax(), [-5.0, -4.0, -3.0, 0.0]),
        # at tau 3/4 the expectile e of 1 2 3 6 is 4: 3/4 * 2 = 1/4 * (3 + 2 + 1)
        (GroupExpectile(level=0.75), [-1.5, -1.0, -0.5, 3.0]),
        (GroupExpectile(), [-2.0, -1.0, 0.0, 3.0]),
    ],
)
def test_the_same_rewards_give_each_baseline_its_own_advantages(part, expected):
    advantages = part(credited([ROW]))[0]
    assert of(advantages) == pytest.approx(expected)
    assert of(advantages, "bob") == of(advantages)
    assert part.reads is None


def test_expectiles_are_those_of_scipy():
    from scipy.stats import expectile as reference

    rng = np.random.default_rng(0)
    for level in (0.05, 0.5, 0.9, 0.98):
        for size in (1, 2, 7):
            numbers = rng.normal(size=size).tolist()
            assert expectile(numbers, level) == pytest.approx(reference(numbers, level), abs=1e-9)
    assert expectile([3.0, 3.0, 3.0], 0.9) == 3.0


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_that_is_no_expectile_is_refused(level):
    for part, field in ((GroupExpectile, "level"), (GAE, "expectile")):
        with pytest.raises(ConfigError, match=rf"^{field}: must lie between 0 and 1"):
            part(**{field: level})


def test_the_expectile_weighs_good_surprises_more_and_before_the_clip():
    # V 2 and 1 with rewards 1 then 4: errors 1 + 1 - 2 = 0 and 4 - 1 = 3; then 1 + 1 - 4 = -2
    values = {"alice": (2.0, 1.0, None), "bob": (4.0, 1.0, None)}
    part = GAE(expectile=0.75)
    advantages = part(credited([chain([1.0, 4.0])]), [values])[0]
    assert of(advantages) == [0.0, 4.5]
    assert of(advantages, "bob") == [-1.0, 4.5]
    clipped = GAE(expectile=0.75, clip=4.0)(credited([chain([1.0, 4.0])]), [values])[0]
    assert of(clipped) == [0.0, 4.0]
    plain = GAE().targets(credited([chain([1.0, 4.0])]), [values])
    assert part.targets(credited([chain([1.0, 4.0])]), [values]) == plain, (
        "the critic's loss weighs, no target"
    )


def test_a_small_surprise_is_weighed_by_its_sign_as_a_large_one_is():
    assert [weighted(error, 0.75) for error in (0.5, -0.5)] == [0.75, -0.25]


def test_what_is_added_to_a_deviation_makes_it_larger():
    # deviation 1e-6: a half each way
    close = tree([(0, 0.0), (0, 2e-6)])
    assert of(GroupMean(normalize_std=True)(credited([close]))[0]) == pytest.approx([-0.5, 0.5])
    assert of(normalized([({}, {"alice": 0.0}, {"alice": 2e-6})])[0]) == pytest.approx([-0.5, 0.5])


def test_dividing_by_the_deviation_is_an_option():
    # population variance (4 + 1 + 0 + 9) / 4
    scaled = of(GroupMean(normalize_std=True)(credited([ROW]))[0])
    assert scaled == pytest.approx([a / (3.5**0.5) for a in (-2.0, -1.0, 0.0, 3.0)], abs=1e-5)


def test_equal_returns_leave_no_advantage_even_when_scaled():
    even = tree([(0, 2.0), (0, 2.0)])
    assert of(GroupMean(normalize_std=True)(credited([even]))[0]) == [0.0, 0.0]


def test_a_group_is_the_siblings_of_one_history_not_of_one_turn():
    advantages = GroupMean()(credited([FORK], 0.5))[0]
    # the root's children return 3 and 4; below, (2, 6) and (0, 4) each have a mean of their own
    assert of(advantages) == [-0.5, 0.5, -2.0, 2.0, -2.0, 2.0]
    alone = GroupMean()(credited([FORK, ROW], 0.5))
    assert alone[0] == advantages, "other episodes do not enter"


@pytest.mark.parametrize("part", [GroupMean, RawReturn])
def test_turns_weigh_alike_by_the_probability_of_the_path(part):
    # paths 1/2 1/2 1/4 1/4 1/4 1/4, mean 1/3: the sum over a turn is 3 at both turns
    [weights] = path_weights([FORK])
    assert weights == pytest.approx([0.0, 1.5, 1.5, 0.75, 0.75, 0.75, 0.75])
    plain, even = part()(credited([FORK]))[0], part(equal_turns=True)(credited([FORK]))[0]
    weights = path_weights([FORK])[0][1:]
    assert of(even) == pytest.approx([w * a for w, a in zip(weights, of(plain), strict=True)])


def test_a_branch_that_ended_early_leaves_its_share_of_the_later_turn_empty():
    # the second action of the root ends: its sibling's two children are 1/4 each, not 1/2
    [weights] = path_weights([tree([(0, 1.0), (0, 2.0), (1, 3.0), (1, 4.0)])])
    assert weights == pytest.approx([0.0, 4 / 3, 4 / 3, 2 / 3, 2 / 3])


@pytest.mark.parametrize(
    "shape", [chain([1.0, 5.0]), tree([(0, 1.0), (0, 3.0), (1, 4.0), (2, 0.0)])]
)
def test_without_later_branches_equal_turns_change_nothing(shape):
    for part in (RawReturn, GroupMean):
        assert part(equal_turns=True)(credited([shape])) == part()(credited([shape]))


CHAINS = tree([(0, 1.0), (0, 3.0), (1, 4.0), (2, 0.0)])
"""Two chains from one root: rewards 1, 4 and 3, 0."""


def test_on_parallel_chains_an_only_child_inherits_the_advantage_of_its_chain():
    # returns of the chains 5 and 3; a baseline from other histories of turn 1 would be 2
    assert of(GroupMean()(credited([CHAINS]))[0]) == [1.0, -1.0, 1.0, -1.0]
    assert of(LeaveOneOut()(credited([CHAINS]))[0]) == [2.0, -2.0, 2.0, -2.0]
    assert of(GroupMax()(credited([CHAINS]))[0]) == [0.0, -2.0, 0.0, -2.0]
    assert of(RawReturn()(credited([CHAINS]))[0]) == [5.0, 3.0, 4.0, 0.0]


def test_the_inherited_baseline_does_not_depend_on_the_later_action():
    """With leave-one-out A - G_t, the baseline at turn 1, is fixed when turn 1's reward moves."""
    for reward in (4.0, -7.0):
        moved = tree([(0, 1.0), (0, 3.0), (1, reward), (2, 0.0)])
        assert LeaveOneOut()(credited([moved]))[0][3]["alice"] - moved.returns(1.0)[3] == -2.0


def test_a_lone_joint_action_at_the_root_carries_no_signal():
    for part in (GroupMean(), LeaveOneOut(), GroupMax()):
        assert part.minimum_group == 2
        assert of(part(credited([chain([1.0, 5.0])]))[0]) == [0.0, 0.0]
    assert RawReturn().minimum_group == 1
    assert Parallel(1).group_size < GroupMean().minimum_group


def test_on_a_cartesian_group_every_joint_action_is_a_sibling():
    cross = tree([(0, 0.0), (0, 1.0), (0, 2.0), (0, 5.0)])
    assert of(GroupMean()(credited([cross]))[0]) == [-2.0, -1.0, 0.0, 3.0]


def test_only_agents_that_acted_get_a_group_advantage():
    turns = tree([(0, 1.0), (0, 3.0)], acting={0: ("bob",)})
    assert GroupMean()(credited([turns]))[0] == ({}, {"bob": -1.0}, {"bob": 1.0})


def test_the_clip_also_bounds_group_advantages():
    assert of(GroupMean(clip=1.5)(credited([ROW]))[0]) == [-1.5, -1.0, 0.0, 1.5]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: RawReturn(clip=0.0), "clip"),
        (lambda: GAE(lam=2.0), "lam"),
        (lambda: GAE(steps=0), "steps"),
        (lambda: QValue(baseline="mean"), "baseline"),
        (lambda: Heterogeneous(size=1), "size"),
        (lambda: RoleBaseline(decay=1.0), "decay"),
        (lambda: TokenGAE(gamma=-0.1), "gamma"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_the_field(make, field):
    with pytest.raises(ConfigError, match=rf"^{field}: [^\n]+$"):
        make()


def test_a_clip_comes_before_the_normalising():
    # -2 -1 0 3 kept within 1.5: mean -1/4, variance 21/16
    advantages = of(GroupMean(clip=1.5, normalize=True)(credited([ROW]))[0])
    scale = (21 / 16) ** 0.5
    assert advantages == pytest.approx([a / scale for a in (-1.25, -0.75, 0.25, 1.75)], abs=1e-5)
    # 1 2 3 6 kept within 3: mean 9/4, variance 11/16
    values = [team((None, 1.0, 2.0, 3.0, 6.0))]
    advantages = of(QValue(clip=3.0, normalize=True)(credited([ROW]), values)[0])
    scale = (11 / 16) ** 0.5
    assert advantages == pytest.approx([a / scale for a in (-1.25, -0.25, 0.75, 0.75)], abs=1e-5)


def test_a_tree_without_an_action_weighs_nothing():
    assert path_weights([tree([])]) == [[0.0]]


TAKEN_IN_TURN = tree(
    [(0, 1.0), (1, 2.0), (1, 6.0), (2, 4.0)], acting={0: ("alice",), 1: ("bob",), 2: ("bob",)}
)
"""Alice, then two answers of Bob, who answers once more in the first branch."""


def test_a_turn_is_paid_until_the_players_next_one():
    [episode] = credited([TAKEN_IN_TURN], 0.5)
    # alice: 1 + ((2 + 4/2) + 6) / 2 / 2; bob's own turns, and before them the root's edge
    assert turn_rewards(episode, "alice")[1] == 3.5
    assert turn_rewards(episode, "bob") == (0.5, 1.0, 2.0, 6.0, 4.0)


def test_a_player_is_followed_to_its_next_turn_in_every_branch():
    [episode] = credited([TAKEN_IN_TURN], 0.5)
    assert sorted(next_own(episode, "bob", 0)) == [2, 3]
    assert next_own(episode, "bob", 2) == [4]
    assert next_own(episode, "bob", 3) == next_own(episode, "alice", 1) == []
    assert [own_turn(episode, "bob", node) for node in (2, 3, 4)] == [0, 0, 1]
    actions = {(0, 2, "bob"): 2.0, (0, 3, "bob"): 6.0, (0, 4, "bob"): 4.0, (0, 1, "alice"): 1.0}
    assert summed([episode], actions) == {
        (0, 4, "bob"): 4.0,
        (0, 3, "bob"): 6.0,
        (0, 2, "bob"): 4.0,
        (0, 1, "alice"): 1.0,
    }


def test_trajectories_weigh_alike_whatever_their_turns():
    # one group of a trajectory with one action and one with three: 4/2 and 4/6
    actions = {(0, 1, "a"): 1.0, (1, 1, "a"): 1.0, (1, 3, "a"): 2.0, (1, 5, "a"): 3.0}
    keys = {(0, "a"): ("game", "a"), (1, "a"): ("game", "a")}
    assert list(equal_trajectories(actions, keys).values()) == pytest.approx([2.0, 2 / 3, 4 / 3, 2])
