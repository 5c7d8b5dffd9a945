"""Episodes that were cut before they ended: what returns, advantages and targets make of them, by
hand. Rewards lie below 0, so that a cut would be paid if V were 0 after it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from credited import credited
from tiny import Notes, Scene
from trees import chain, tree

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.coma import COMA
from colearn.algorithms.magrpo import MAGRPO
from colearn.contract import (
    Algorithm,
    CounterfactualValues,
    TokenAnswer,
    TokenHistory,
    TokenValues,
)
from colearn.contract.packing import contexts
from colearn.contract.task_results import validate_outcome
from colearn.contract.types import Action, Outcome, Tree
from colearn.errors import ConfigError, TaskError
from colearn.methods.advantage.agent_turn_groups import AgentTurn
from colearn.methods.advantage.counterfactual import CounterfactualBaseline
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
from colearn.methods.advantage.self_play import RoleBaseline, SumThenNormalize, TurnByTurn
from colearn.methods.advantage.token_gae import TokenGAE
from colearn.methods.credit.backward import Backward
from colearn.methods.credit.invocation import Invocation
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import TEAM, Centralized
from colearn.methods.critic.decentralized import Decentralized
from colearn.methods.critic.tokenwise import Tokenwise
from colearn.methods.values.explained_variance import pairs
from colearn.programs.workflow import Workflow
from colearn.rollout.growth import Growth
from colearn.rollout.shapes import Chain
from colearn.runs.record.fields import RecordedTree
from colearn.runs.record.recorded_tree import recorded_tree, tree_of
from colearn.tasks.wrappers import Discussion, Pipeline, Single
from colearn.text.notes import note_once
from colearn.training.evaluation.played import mean_objective, mean_returns
from colearn.training.learners.packed_rows import actor_rows
from colearn.training.update.updater import _note_left_out

ONE = ("ann",)
OVERFLOWS = {"truncated": {2: 1}, "agents": ONE}
"""Two turns of three, each paid -1."""


def cut_chain(discount: float = 1.0, **counted: float) -> Tree[Any]:
    (episode,) = credited([replace(chain([-1.0, -1.0], **OVERFLOWS), **counted)], discount)
    return episode


def of_ann(advantages: Any) -> list[float | None]:
    return [node.get("ann") for node in advantages[0][1:]]


def group(**settings: Any) -> Tree[Any]:
    """Three joint actions at the root, each paid -1. The first overflows, two turns before the
    horizon; the second is paid -1 and -1 more; the third -1 and -3."""
    edges = [(0, -1.0), (0, -1.0), (0, -1.0), (2, -1.0), (3, -1.0), (4, -1.0), (5, -3.0)]
    made = tree(edges, agents=ONE, truncated={1: 2})
    (episode,) = credited([replace(made, **settings)])
    return episode


# where a critic gives V of the history at the cut


@pytest.mark.parametrize(
    ("part", "advantages", "first_target"),
    [
        (GAE(), [0.3, -0.25], -3.7),
        (GAE(lam=1.0, steps=2), [0.075, -0.25], -3.925),
        (GAE(lam=1.0, steps=9), [0.075, -0.25], -3.925),
        (GAE(lam=0.5), [0.3 - 0.45 * 0.25, -0.25], -4.0 + 0.3 - 0.45 * 0.25),
        (GAE(lam=1.0), [0.075, -0.25], -3.925),
    ],
    ids=["TD(0)", "2-step", "9-step", "GAE", "MC"],
)
def test_the_last_joint_action_bootstraps_from_the_value_where_the_episode_was_cut(
    part: GAE, advantages: list[float], first_target: float
) -> None:
    """gamma 0.9; V = -4, -3, -2.5: delta = -1 - 2.7 + 4 = 0.3, then -1 - 2.25 + 3 = -0.25."""
    episode, values = cut_chain(0.9), {"ann": (-4.0, -3.0, -2.5)}
    assert of_ann(part([episode], [values])) == pytest.approx(advantages)
    (targets,) = part.targets([episode], [values])
    assert targets["ann"] == pytest.approx((first_target, -3.25, -2.5))


def test_a_joint_action_that_overflows_gets_no_positive_advantage_by_being_cut() -> None:
    """At V = -4 of four turns at -1 each, the cut after one of them changes nothing."""
    (episode,) = credited([chain([-1.0], truncated={1: 3})])
    both = dict.fromkeys(episode.agents, (-4.0, -3.0))
    ((_, after),) = GAE()([episode], [both])
    assert after == {"alice": 0.0, "bob": 0.0}


def test_in_a_tree_the_target_is_the_mean_over_cut_and_ended_branches() -> None:
    episode = group()
    values = {"ann": (-4.0, -2.0, -3.0, -3.0, -2.0, -2.0, None, None)}
    (targets,) = GAE().targets([episode], [values])
    assert targets["ann"][0] == pytest.approx((-3.0 - 4.0 - 4.0) / 3)
    (targets,) = GAE(lam=1.0).targets([episode], [values])
    assert targets["ann"][0] == pytest.approx((-3.0 - 3.0 - 5.0) / 3)


def test_an_agent_without_a_value_at_the_cut_does_not_learn_from_its_last_action_alone() -> None:
    """Ann, Bob, Ann in turn; Bob would have been next, so Ann's critic has no value there."""
    acting = {0: ("alice",), 1: ("bob",), 2: ("alice",), 3: ("bob",)}
    (episode,) = credited([chain([-1.0, -1.0, -1.0], acting=acting, truncated={3: 2})])
    values = {"alice": (-5.0, None, -3.0, None), "bob": (None, -4.0, None, -2.0)}
    (advantages,) = GAE()([episode], [values])
    assert list(advantages) == [{}, {"alice": 0.0}, {"bob": 0.0}, {}]
    counted = replace(episode, missing_turn_reward=-1.0)
    assert GAE()([counted], [values])[0][3] == {"alice": 0.0}


def test_tokens_bootstrap_from_the_value_of_the_next_answers_first_token() -> None:
    values = {"ann": TokenValues((-4.0, -3.0, -2.5), ((), (), ()))}
    assert of_ann(TokenGAE(lam=0.0)([cut_chain(0.9)], [values])) == [
        pytest.approx((0.3,)),
        pytest.approx((-0.25,)),
    ]
    unread = {"ann": TokenValues((-4.0, -3.0, None), ((), (), ()))}
    assert of_ann(TokenGAE(lam=0.0)([cut_chain(0.9)], [unread])) == [pytest.approx((0.3,)), None]


def test_a_q_value_of_the_cut_joint_action_has_no_target() -> None:
    values = {"ann": (None, -3.0, -2.5)}
    assert of_ann(QValue()([cut_chain()], [values])) == [-3.0, None]
    (targets,) = QValue().targets([cut_chain()], [values])
    assert targets["ann"][:2] == [None, -3.5] and math.isnan(targets["ann"][2])
    (targets,) = QValue().targets([cut_chain(missing_turn_reward=-2.0)], [values])
    assert targets["ann"] == [None, -3.5, -3.0]


def test_a_counterfactual_baseline_does_not_compare_a_return_that_misses_turns() -> None:
    own = CounterfactualValues((None, -3.0, -2.0), ((), (-2.5,), (-2.5,)))
    part = CounterfactualBaseline()
    assert of_ann(part([cut_chain()], [{"ann": own}])) == [None, None]
    assert of_ann(part([cut_chain(missing_turn_reward=-1.0)], [{"ann": own}])) == [-0.5, 0.5]


@pytest.mark.parametrize("critic", [Centralized(), Decentralized(), Tokenwise()])
def test_every_critic_of_histories_reads_what_was_observed_at_the_cut(critic: Any) -> None:
    cut = chain([-1.0], truncated={1: 3})
    for reader in critic.readers(cut.agents):
        row = critic.row(cut, reader, lambda text: [len(text)], limit=100)
        assert [mark.node for mark in row.marks] == [0, 1]
        values = critic.values(cut, reader, row, (-4.0, -3.0))
        assert all(list(series)[:2] == [-4.0, -3.0] for series in values.values())


@pytest.mark.parametrize("critic", [Centralized(), Tokenwise()])
def test_a_history_that_the_critic_cannot_read_has_no_value_and_is_no_error(critic: Any) -> None:
    cut = chain([-1.0], truncated={1: 3}, agents=ONE)
    (reader,) = critic.readers(ONE)
    row = critic.row(cut, reader, lambda text: [1], limit=2)
    assert [mark.node for mark in row.marks] == [0]
    assert list(critic.values(cut, reader, row, (-4.0,))["ann"])[1] is None


def test_a_critic_of_actions_reads_nothing_after_the_cut() -> None:
    cut = chain([-1.0], truncated={1: 3})
    row = Centralized(value="q").row(cut, TEAM, lambda text: [len(text)], limit=100)
    ended = Centralized(value="q").row(chain([-1.0]), TEAM, lambda text: [len(text)], limit=100)
    assert row == ended


def test_a_value_head_on_the_actor_reads_the_cut_and_no_policy_is_trained_on_it() -> None:
    cut = chain([-1.0], truncated={1: 3}, agents=ONE)
    (row,) = actor_rows(cut, "ann", value="observation")
    assert [mark.node for mark in row.marks] == [0, 1]
    assert [span.node for span in row.spans] == [1]
    assert actor_rows(cut, "ann") == actor_rows(chain([-1.0], agents=ONE), "ann")
    assert len(contexts(cut, "ann")[0][1].observations) == 0


# where no critic gives a value


@pytest.mark.parametrize(
    ("part", "advantages"),
    [
        (GroupMean(), (None, 1.0, -1.0)),
        (LeaveOneOut(), (None, 2.0, -2.0)),
        (GroupMax(), (None, 0.0, -2.0)),
        (GroupExpectile(), (None, 1.0, -1.0)),
        (RawReturn(), (None, -3.0, -5.0)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_group_leaves_out_the_joint_action_that_was_cut(part: Any, advantages: Any) -> None:
    (by_node,) = part([group()])
    assert tuple(by_node[k].get("ann") for k in (1, 2, 3)) == advantages


def test_the_missing_turns_count_with_the_reward_of_a_failed_turn() -> None:
    """-1 and two turns at -2 are -5, as the third: the mean is -13 / 3."""
    (by_node,) = GroupMean()([group(missing_turn_reward=-2.0)])
    assert [by_node[k]["ann"] for k in (1, 2, 3)] == pytest.approx([-2 / 3, 4 / 3, -2 / 3])


def test_missing_turns_are_discounted() -> None:
    (episode,) = credited(
        [replace(chain([-1.0], truncated={1: 3}, agents=ONE), missing_turn_reward=-8.0)], 0.5
    )
    assert episode.returns_of("ann") == (-8.0, -1.0 - 0.5 * (8.0 + 4.0 + 2.0))


def test_with_discount_0_no_turn_is_missing() -> None:
    assert cut_chain(0.0).returns_of("ann") == (-1.0, -1.0, -1.0)
    assert of_ann(GAE()([cut_chain(0.0)], [{"ann": (-1.5, -1.5, None)}])) == [0.5, 0.5]


def test_an_immediate_reward_is_compared_whether_or_not_the_episode_was_cut() -> None:
    (by_node,) = AgentTurn(normalize_std=False)([group()])
    assert [by_node[k]["ann"] for k in (1, 2, 3)] == [0.0, 0.0, 0.0]


def games(**settings: Any) -> list[Tree[Any]]:
    """One game that was cut after one of two turns, and one that was not."""
    cut = chain([-1.0], truncated={1: 1}, agents=ONE)
    return credited([replace(one, **settings) for one in (cut, chain([-1.0, -3.0], agents=ONE))])


@pytest.mark.parametrize(
    "part",
    [RoleBaseline(decay=0.0), SumThenNormalize(equal_trajectories=False), TurnByTurn()],
    ids=lambda part: type(part).__name__,
)
def test_a_game_that_was_cut_is_in_no_baseline_of_self_play(part: Any) -> None:
    cut, whole = part(games())
    (alone,) = part(games()[1:])
    assert cut[1] == {} and whole == alone


def test_a_counted_game_is_compared_in_self_play() -> None:
    """Returns -4, and -4 and -3: the mean is -11 / 3."""
    part = SumThenNormalize(equal_trajectories=False)
    cut, whole = part(games(missing_turn_reward=-3.0))
    assert [cut[1]["ann"], whole[1]["ann"], whole[2]["ann"]] == pytest.approx(
        [-1 / 3, -1 / 3, 2 / 3]
    )


@pytest.mark.parametrize("credit", [Backward(), Invocation(node=0.0, trajectory=1.0)])
def test_credit_that_includes_later_rewards_includes_the_missing_turns(credit: Any) -> None:
    cut = group()
    (left_out,) = credited([cut], 0.0, credit)
    assert math.isnan(left_out.returns_of("ann")[1])
    assert left_out.returns_of("ann")[3] == -5.0
    (counted,) = credited([replace(cut, missing_turn_reward=-2.0)], 0.0, credit)
    assert counted.returns_of("ann")[1] == -5.0
    (by_node,) = Heterogeneous(normalize_std=False)([left_out])
    assert [by_node[k].get("ann") for k in (1, 2, 3)] == [None, 1.0, -1.0]


def test_the_algorithms_setting_is_that_of_its_trees() -> None:
    parts = CoLLMCC(missing_turn_reward=-2.0).checked_parts()
    (episode,) = parts.credited([chain([-1.0], truncated={1: 3})])
    assert episode.returns_of("bob")[1] == -7.0
    (episode,) = CoLLMCC().checked_parts().credited([chain([-1.0], truncated={1: 3})])
    assert math.isnan(episode.returns_of("bob")[1])
    with pytest.raises(ConfigError, match=r"^missing_turn_reward: must be finite, got nan"):
        CoLLMCC(missing_turn_reward=math.nan).checked_parts()


# what is reported and recorded


def test_reports_add_nothing_for_missing_turns() -> None:
    cut = [chain([-1.0], truncated={1: 3})]
    assert mean_returns(cut, frozenset({"team"})) == {"return": -1.0}
    assert mean_objective(cut, Backward()) == mean_objective([chain([-1.0])], Backward())
    assert cut[0].returns(1.0) == (-1.0, -1.0)


def test_a_value_is_not_judged_by_a_return_that_misses_turns() -> None:
    values = {"ann": (-4.0, -3.0, None)}
    assert list(pairs([cut_chain()], [values], of_state=True)) == []


def test_a_recorded_episode_keeps_its_missing_turns() -> None:
    line = RecordedTree.model_validate(recorded_tree(0, chain([-1.0], truncated={1: 3})))
    assert [node.missing_turns for node in tree_of(line).nodes] == [0, 3]
    assert "missing_turns" not in recorded_tree(0, chain([-1.0]))["nodes"][1]


# how an episode is cut


class Limited(Notes):
    """Stops after one turn, though the task has not ended."""

    def step(self, state: Scene, actions: Any, rng: np.random.Generator) -> Outcome[Scene]:
        return replace(super().step(state, actions, rng), truncated=True)


def test_a_tasks_own_limit_leaves_what_agents_would_have_answered(played: Any) -> None:
    tree = played(Limited(items=1, horizon=4))
    assert len(tree.nodes) == 2 and tree.nodes[1].terminal and tree.nodes[1].truncated
    assert tree.nodes[1].missing_turns == 3 and tree.nodes[1].overlong is None
    assert all(observation.tokens for observation in tree.nodes[1].unanswered.values())
    assert set(tree.nodes[1].unanswered) == set(tree.agents)


def test_at_the_horizon_a_truncated_episode_misses_its_end(played: Any) -> None:
    assert played(Limited(items=1, horizon=1)).nodes[1].missing_turns == 1
    assert played(Notes(items=1, horizon=1)).nodes[1].missing_turns == 0


class AtItsLimit(Notes):
    """Its time limit and its end come with the same joint action."""

    def step(self, state: Scene, actions: Any, rng: np.random.Generator) -> Outcome[Scene]:
        return replace(super().step(state, actions, rng), truncated=True, done=True)


def test_an_episode_whose_time_limit_comes_with_its_end_is_truncated(played: Any) -> None:
    end = played(AtItsLimit(items=1, horizon=4)).nodes[-1]
    assert (end.turn, end.missing_turns) == (1, 3)
    assert set(end.unanswered) == {"ada", "ben"}


class Short(Limited):
    """An item's episodes have three turns, though others of the task have more."""

    def horizon_of(self, item: Any) -> int:
        return 3


def test_turns_are_missing_up_to_the_horizon_of_the_item(played: Any) -> None:
    assert played(Short(items=1, horizon=9)).nodes[-1].missing_turns == 2
    assert played(Limited(items=1, horizon=9)).nodes[-1].missing_turns == 8


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_an_episode_that_a_server_refuses_as_too_long_misses_the_rest(turns: int) -> None:
    """A player at an endpoint learns it from the server's answer, wherever the episode is."""
    from tests.unit.rollout.test_grow import players_of

    task = Notes(items=1, horizon=4)
    seats = {agent: agent for agent in task.agents}
    growth = Growth(
        task, task.items("train")[0], Chain(), SharedReward(), players_of(task), seats, seed=3,
        episode=0,
    )  # fmt: skip
    (at,) = growth.start()
    for _ in range(turns):
        answers = {
            request.seat: [TokenAnswer(Action("owl", (1,)), TokenHistory())]
            for request in growth.requests(at)
        }
        chosen = growth.next_round(at, answers, [])
        assert chosen is not None
        (child,) = growth.children(at, answers, chosen)
        outcome = Outcome(state=at[0].state, reward=0.0)
        (at,) = growth.settle(at, [growth.with_outcome(child, outcome)])
    shown = growth.nodes[-1].observations
    growth.end_overlong("ben")
    end = growth.tree().nodes[-1]
    assert (end.turn, end.missing_turns, end.overlong) == (turns, 4 - turns, "ben")
    assert end.terminal and end.truncated and end.unanswered == shown and set(shown) == set(seats)


def test_a_full_context_leaves_the_text_that_no_answer_fits_after(played: Any) -> None:
    tree = played(Notes(items=1, horizon=4), positions=80)
    end = tree.nodes[-1]
    assert end.overlong is not None and end.truncated and end.terminal
    assert end.missing_turns == 4 - end.turn
    assert end.unanswered[end.overlong].text and end.unanswered[end.overlong].tokens == ()


@pytest.mark.parametrize("wrapper", [Discussion, Pipeline, Single])
def test_a_wrapper_forwards_a_truncation(wrapper: Any) -> None:
    task = wrapper(Limited(items=1, horizon=4))
    rng = np.random.default_rng(0)
    state = task.reset(task.items("train")[0], rng)
    outcome = Outcome(state=state, reward=0.0)
    for _ in range(4):
        acting = {a for a in task.agents if task.observe(outcome.state, a) is not None}
        outcome = task.step(outcome.state, dict.fromkeys(acting, "owl"), rng)
        if outcome.truncated:
            return
    raise AssertionError("no step was truncated")


class Endless(Workflow[str]):
    """Asks its only role again and again."""

    agents = ("ann",)
    horizon = 2

    def items(self, split: str) -> list[str]:
        return ["owl"]

    async def run(self, team: Any, item: str) -> None:
        while True:
            await team.ann(item)


def test_a_workflow_that_runs_on_is_truncated_at_its_horizon() -> None:
    task, rng = Endless(), np.random.default_rng(0)
    first = task.step(task.reset("owl", rng), {"ann": "x"}, rng)
    second = task.step(first.state, {"ann": "x"}, rng)
    assert [first.truncated, second.truncated] == [False, True]


def test_an_environments_truncation_before_the_horizon_is_the_tasks() -> None:
    pytest.importorskip("pettingzoo", reason="needs the games extra")
    from colearn.tasks.pettingzoo import PettingZoo

    ends = {}
    for horizon in (3, 4):
        settings = {"max_cycles": 3}
        task = PettingZoo(env="classic/rps_v2", parallel=True, horizon=horizon, settings=settings)
        rng = np.random.default_rng(0)
        state = task.reset(task.items("train")[0], rng)
        for _ in range(3):
            outcome = task.step(state, {"player_0": "Paper", "player_1": "Rock"}, rng)
            state = outcome.state
        ends[horizon] = outcome
        assert outcome.done
        assert task.observe(state, "player_0").startswith("The other chose Rock.")
    assert [ends[3].truncated, ends[4].truncated] == [False, True]


def test_a_truncation_that_is_no_bool_is_one_line() -> None:
    wrong: Any = Outcome(state=None, reward=0.0, truncated=1)  # type: ignore[arg-type]
    with pytest.raises(TaskError, match=r"^task\.step: truncated is a int, must be a bool"):
        validate_outcome(wrong, ["ada"])


@pytest.fixture
def played() -> Any:
    from tests.unit.rollout.test_grow import grown, players_of

    def play(task: Any, positions: int | None = None) -> Tree[Any]:
        players = {
            name: replace(player, spec=replace(player.spec, positions=positions))
            for name, player in players_of(task).items()
        }
        (made,), _ = grown(task, players=players)
        return made

    return play


def test_what_the_shared_reward_credits_is_not_changed_by_a_cut() -> None:
    cut = chain([-1.0, -2.0], truncated={2: 3}, agents=ONE)
    assert SharedReward()(cut) == ({}, {"ann": -1.0}, {"ann": -2.0})


@pytest.mark.parametrize(
    ("algorithm", "told"),
    [(MAGRPO(), 1), (MAGRPO(missing_turn_reward=-1.0), 0), (CoLLMCC(), 0), (COMA(), 1)],
    ids=["no critic", "a reward of missing turns", "V after the cut", "Q before it"],
)
def test_returns_that_are_not_trained_are_noted_unless_a_value_stands_for_them(
    algorithm: Algorithm, told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    note_once.cache_clear()
    _note_left_out(algorithm.parts(), [chain([1.0]), cut_chain()])
    _note_left_out(algorithm.parts(), [chain([1.0])])
    assert capsys.readouterr().err.count("note: episodes were truncated before they ended") == told
