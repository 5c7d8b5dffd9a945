"""Rewards of None: not scored, not trained, in no baseline and in no mean (TRL's meaning)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from colearn.contract import CounterfactualValues, Headline, TokenValues, ValueLoss
from colearn.contract.task_results import validate_outcome
from colearn.contract.types import Outcome
from colearn.errors import TaskError
from colearn.methods.advantage.agent_turn_groups import AgentQuestion, AgentTurn
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
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.payoff import Payoff
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.loss.value import value_loss
from colearn.training.evaluation.evaluate import Evaluation, headline_value
from colearn.training.evaluation.played import mean_outcomes, mean_returns
from colearn.training.update.metrics import advantage_metrics
from tests.helpers.credited import credited
from tests.helpers.trees import chain, tree
from tests.helpers.updates import learner_of, new_critics, value_gradients, value_network

WITH = (1.0, None, 0.0, 0.5)
WITHOUT = (1.0, 0.0, 0.5)


def fork(rewards):
    """One agent's answers to one prompt."""
    return tree([(0, reward) for reward in rewards], agents=("ann",))


def numbers(advantages):
    return [node.get("ann") for node in advantages[0][1:]]


def test_trls_baseline_is_the_mean_of_the_scored_completions():
    # trl 1.x: rewards - nanmean(rewards), with the mean of 1, 0 and 0.5
    assert numbers(GroupMean()(credited([fork(WITH)]))) == [0.5, None, -0.5, 0.0]


@pytest.mark.parametrize("advantage", [GroupMean(), LeaveOneOut(), GroupMax(), GroupExpectile()])
def test_the_only_scored_completion_of_a_group_is_neither_better_nor_worse(advantage):
    assert numbers(advantage(credited([fork([1.0, None])]))) == [0.0, None]


@pytest.mark.parametrize(
    "advantage",
    [
        GroupMean(),
        GroupMean(normalize_std=True, normalize=True, clip=0.4),
        LeaveOneOut(),
        GroupMax(),
        GroupExpectile(level=0.8),
        AgentTurn(),
        AgentQuestion(normalize_std=False),
        Heterogeneous(),
        RawReturn(clip=0.7),
    ],
    ids=lambda advantage: type(advantage).__name__,
)
def test_the_others_of_a_group_are_compared_as_if_the_unscored_one_were_not_there(advantage):
    first, unscored, *rest = numbers(advantage(credited([fork(WITH)])))
    assert unscored is None
    assert [first, *rest] == numbers(advantage(credited([fork(WITHOUT)])))


@pytest.mark.parametrize(
    "advantage",
    [
        *(RoleBaseline(decay=0.5), SumThenNormalize(), SumThenNormalize(turn_level=False)),
        *(TurnByTurn(), TurnByTurn(accumulate=False)),
    ],
    ids=lambda advantage: type(advantage).__name__,
)
def test_an_unscored_game_changes_no_other_games_advantages(advantage):
    games = [chain([1.0, 3.0]), chain([None, None]), chain([0.0, 5.0])]
    with_it = advantage(credited(games))
    fresh = replace(advantage)
    without = fresh(credited([games[0], games[2]]))
    assert list(with_it[1]) == [{}, {}, {}]
    assert [with_it[0], with_it[2]] == list(without)


@pytest.mark.parametrize(
    "advantage", [RawReturn(), GroupMean(), RoleBaseline(), SumThenNormalize(), TurnByTurn()]
)
def test_an_action_whose_later_reward_is_not_scored_has_no_advantage(advantage):
    (rows,) = advantage(credited([chain([1.0, None])]))
    assert rows == ({}, {}, {})


def test_a_branch_that_is_not_scored_is_in_no_mean_over_branches():
    rows = tree([(0, 1.0), (1, 4.0), (1, None)], agents=("ann",))
    assert credited([rows])[0].returns_of("ann")[:3] == (5.0, 5.0, 4.0)
    assert math.isnan(credited([rows])[0].returns_of("ann")[3])


def test_a_td_error_needs_its_own_reward_and_a_lambda_return_all_later_ones():
    episodes, values = credited([chain([1.0, None], agents=("ann",))]), [{"ann": (2.0, 10.0, None)}]
    assert GAE(lam=0.0)(episodes, values)[0] == ({}, {"ann": 1.0 + 10.0 - 2.0}, {})
    assert GAE(lam=0.5)(episodes, values)[0] == ({}, {}, {})
    targets = GAE(lam=0.0).targets(episodes, values)[0]["ann"]
    assert targets[0] == 11.0 and math.isnan(targets[1]) and targets[2] is None


def test_action_values_of_unscored_actions_train_neither_actor_nor_critic():
    episodes, values = credited([fork((1.0, None, 3.0))]), [{"ann": (None, 2.0, 9.0, 4.0)}]
    advantage = QValue(baseline="siblings")
    assert numbers(advantage(episodes, values)) == [-1.0, None, 1.0]
    targets = advantage.targets(episodes, values)[0]["ann"]
    assert (targets[1], targets[3]) == (1.0, 3.0) and math.isnan(targets[2])


def test_a_counterfactual_baseline_leaves_out_unscored_actions():
    episodes = credited([fork((1.0, None))])
    own = CounterfactualValues((None, 0.0, 0.0), ((), (0.25,), (0.5,)))
    assert numbers(CounterfactualBaseline()(episodes, [{"ann": own}])) == [0.75, None]
    targets = CounterfactualBaseline().targets(episodes, [{"ann": own}])[0]["ann"]
    assert targets[1] == 1.0 and math.isnan(targets[2])


def test_tokens_of_an_unscored_action_have_no_advantage():
    episodes = credited([fork((1.0, None))])
    own = TokenValues((0.25, None, None), ((), (), ()))
    advantage = TokenGAE()
    assert numbers(advantage(episodes, [{"ann": own}])) == [(0.75,), None]
    assert advantage.targets(episodes, [{"ann": own}])[0]["ann"][0] == 1.0


def test_a_value_without_a_scored_target_adds_no_loss_and_no_gradient():
    values = torch.tensor([1.0, 5.0], requires_grad=True)
    targets = torch.tensor([3.0, math.nan])
    settings = ValueLoss(coefficient=1.0, clip=0.5)
    loss, metrics = value_loss(values, targets, torch.tensor([1.0, -9.0]), settings, total=1)
    loss.backward()
    assert loss.item() == 4.0 and values.grad.tolist() == [-4.0, 0.0]
    assert metrics["target_mean"] == 3.0 and metrics["value_error"] == 4.0


@pytest.mark.parametrize("frozen", [False, True])
def test_a_critic_learns_the_same_with_and_without_an_unscored_episode(frozen):
    def gradients(trees):
        network = value_network(0)
        settings = ValueLoss(frozen_targets=frozen)
        learners = {"team": learner_of("team", network)}
        critics = new_critics(Centralized(), learners)
        old = critics.values(trees) if frozen else None
        value_gradients(critics, GAE(lam=1.0), credited(trees), settings, old)
        return [p.grad.clone() for p in network.parameters() if p.grad is not None]

    scored = [chain([1.0, 2.0]), chain([0.5])]
    pairs = zip(gradients(scored), gradients([*scored, chain([None])]), strict=True)
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in pairs)


def test_explained_variance_reads_scored_returns_alone():
    episodes = credited([chain([1.0]), chain([3.0]), chain([None])])
    values = [{"alice": (v, None)} for v in (1.0, 3.0, 100.0)]
    metrics = advantage_metrics([(), (), ()], episodes, values)
    assert metrics["critic/explained_variance"] == 1.0 and metrics["critic/value_mean"] == 2.0


def paid(reward, **local):
    return Outcome(state=None, reward=reward, local_rewards=local)


@pytest.mark.parametrize("credit", [Mixed(alpha=2.0), Backward(), Invocation(turn=1.0)])
def test_of_two_kinds_of_reward_the_scored_one_is_the_credit(credit):
    agents, twice = ("ann",), 2.0 if isinstance(credit, Mixed) else 1.0
    assert credit.step(paid(None, ann=3.0), agents) == {"ann": 3.0}
    assert credit.step(paid(3.0, ann=None), agents) == {"ann": 3.0 * twice}
    assert math.isnan(credit.step(paid(None), agents)["ann"])
    assert math.isnan(credit.step(paid(None, ann=None), agents)["ann"])


def test_team_and_payoff_credit_are_unscored_with_their_reward():
    assert math.isnan(SharedReward().step(paid(None, ann=1.0), ("ann",))["ann"])
    assert math.isnan(Payoff().step(paid(1.0, ann=None), ("ann",))["ann"])


@pytest.mark.parametrize(
    "credit", [Backward(), Invocation(trajectory=1.0), Mixed(), SharedReward()]
)
def test_an_episode_whose_end_is_not_scored_credits_no_earlier_action_with_0(credit):
    (episode,) = credited([chain([0.0, None])], credit=credit)
    assert all(math.isnan(number) for number in episode.returns_of("alice"))


def test_means_are_over_scored_episodes_and_the_others_are_counted():
    trees = [chain([1.0]), chain([None]), chain([2.0])]
    measured = [
        replace(one, nodes=(one.nodes[0], replace(one.nodes[1], metrics={"right": right})))
        for one, right in zip(trees, (1.0, None, 0.0), strict=True)
    ]
    assert mean_returns(trees, frozenset({"team"})) == {"return": 1.5, "unscored": 1.0}
    assert mean_returns([trees[1]], frozenset({"team"})) == {"unscored": 1.0}
    outcomes = mean_outcomes(measured, frozenset({"team"}), SharedReward())
    assert (outcomes["return"], outcomes["objective"], outcomes["right"]) == (1.5, 1.5, 0.5)


def test_a_headline_that_no_episode_measured_is_named():
    evaluation = Evaluation({"return": 1.0}, [chain([1.0])])
    assert headline_value(evaluation, Headline()) == 1.0
    with pytest.raises(TaskError, match=r"^evaluation\.headline: 'recall' was measured in none of"):
        headline_value(evaluation, Headline("recall"))


def test_a_task_may_score_no_reward_by_none():
    outcome = Outcome(state=0, reward=None, local_rewards={"a": None}, earned={(0, "a"): None})
    assert validate_outcome(outcome, ("a",)) is outcome
