"""The paper's propositions on small problems: the machinery of `benchmarks/propositions.py`, and
the same comparison with real networks through the real updater.

All seeds are fixed, so a test by p-value has one outcome.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from local_learners import Recorder
from tiny import cast
from updates import new_updater

from colearn.config import OptimizerSettings
from colearn.contract import Parts
from colearn.exact.exact_value import evaluate
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.credit.shared_reward import SharedReward as Shared
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.tasks.dpomdp import TextDecPOMDP
from colearn.training.evaluation.exact import ExactEvaluator
from colearn.training.learners.batch import make_batch
from colearn.training.learners.next_tokens import mark_states

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import propositions
from _propositions_critics import converged, exact, expected_gradient, fresh
from _propositions_estimators import (
    flat,
    gradients,
    per_sample,
    per_turn,
    samples_of,
)
from _propositions_statistics import bias
from _propositions_team import Team, credited, rows_of
from propositions import library_cosine

LEVEL = 0.05
FAMILY = 10
"""Tests by p-value that should not reject: 5% for all of them together (Bonferroni)."""
DIRECTIONS = 20
"""Random ones in parameter space, beside the exact gradient's own, for each network."""
TREES = 400
"""Of the networks."""
EXACT = 1e-10
"""Relative to a norm: rounding of sums in float64."""


def estimates_of(team, shape, number, advantage, weigh, seed=0):
    trees, _ = team.play(shape, number, seed=seed)
    samples = samples_of(team, trees, [rows_of(team, tree) for tree in trees])
    return gradients(
        team, samples, flat(samples, advantage(credited(trees)), team.agents), weigh(samples)
    )


def per_turn_of(horizon):
    return lambda samples: per_turn(samples, horizon)


def distance(one, other):
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def test_the_gradient_of_the_tables_is_the_slope_of_j():
    team = Team("two_step", 2)
    agent = team.agents[0]
    scores = np.log(team.tables[agent])

    def value(step):
        moved = scores.copy()
        moved[0, 1] += step
        table = np.exp(moved) / np.exp(moved).sum(axis=1, keepdims=True)
        policy = {**team.policy, agent: tuple(team.by_turn(agent, table))}
        return evaluate(team.histories, policy).value

    assert team.gradient[1] == pytest.approx((value(1e-5) - value(-1e-5)) / 2e-5, rel=1e-7)


def test_an_estimate_is_the_sum_over_turns_of_the_mean_over_the_turns_joint_actions():
    team = Team("two_step", 2)
    [tree], _ = team.play(KaryTree(2), 1, seed=3)
    places, returns = rows_of(team, tree), tree.returns(1.0)
    by_hand = []
    for i, agent in enumerate(team.agents):
        total = np.zeros(team.tables[agent].shape)
        for node in tree.nodes[1:]:
            row = places[node.parent][i]
            score = -team.tables[agent][row]
            score[node.actions[agent].tokens[0]] += 1.0
            total[row] += score * returns[node.index] / {1: 2, 2: 4}[node.turn]
        by_hand.append(total.ravel())
    [estimate] = estimates_of(team, KaryTree(2), 1, RawReturn(), per_turn_of(2), seed=3)
    assert distance(estimate, np.concatenate(by_hand)) < EXACT


@pytest.fixture(scope="module")
def pairs():
    """400 trees of K = 2 on `two_step`: the team, which entries are tested, the samples, and the
    trees."""
    team, shape = Team("two_step", 2), KaryTree(2)
    trees, _ = team.play(shape, 400, seed=0)
    samples = samples_of(team, trees, [rows_of(team, tree) for tree in trees])
    return team, team.tested(shape, 400), samples, credited(trees)


def gradients_of(pairs, advantage):
    team, _, samples, trees = pairs
    worth = flat(samples, advantage(trees), team.agents)
    return gradients(team, samples, worth, per_turn(samples, 2))


def test_k_sampling_without_a_baseline_is_unbiased(pairs):
    team, tested, _, _ = pairs
    result = bias(gradients_of(pairs, RawReturn()), team.gradient, tested, seed=0)
    assert min(result.max_t_p, result.norm_p) > LEVEL / FAMILY


def test_the_same_test_finds_that_the_group_mean_shortens_the_gradient_by_half(pairs):
    team, tested, _, _ = pairs
    estimates = gradients_of(pairs, GroupMean())
    result = bias(estimates, team.gradient, tested, seed=0)
    halved = bias(estimates, team.gradient / 2, tested, seed=0)
    assert result.max_t_p < LEVEL < halved.max_t_p


def test_dividing_by_all_samples_turns_the_gradient_towards_the_late_turns():
    team = Team("two_step", 2)
    parts = [float(((team.gradient * (team.turns == t)) ** 2).sum()) for t in (0, 1)]
    # K = 4: turn 0 has 4 of 20 joint actions, turn 1 has 16
    by_hand = (0.2 * parts[0] + 0.8 * parts[1]) / (
        (0.04 * parts[0] + 0.64 * parts[1]) * sum(parts)
    ) ** 0.5
    assert library_cosine(team, 4) == pytest.approx(by_hand, rel=1e-12)


def test_both_weights_are_the_same_up_to_the_horizon_in_a_chain():
    team = Team("two_step", 2)
    paper = estimates_of(team, Chain(), 5, RawReturn(), per_turn_of(2))
    library = estimates_of(team, Chain(), 5, RawReturn(), per_sample)
    assert distance(2.0 * library, paper) < EXACT


def test_with_equal_turns_the_librarys_update_is_the_papers_estimator_up_to_the_horizon():
    team = Team("two_step", 2)
    paper = estimates_of(team, KaryTree(3), 5, RawReturn(), per_turn_of(2))
    library = estimates_of(team, KaryTree(3), 5, RawReturn(equal_turns=True), per_sample)
    assert distance(2.0 * library, paper) < EXACT


def test_generator_calls_are_those_of_proposition_4_3(monkeypatch):
    monkeypatch.setattr(propositions, "LEVELS", (1, 2))
    rows = propositions.calls()
    assert {row["shape"] for row in rows} == {"KaryTree", "Parallel", "Chain", "Cross"}
    assert [row for row in rows if row["counted"] != row["formula"]] == []


@pytest.mark.parametrize("central", [True, False])
def test_an_exact_critic_gives_the_exact_gradient(central):
    team = Team("dec_tiger", 3)
    assert distance(expected_gradient(exact(team, central)), team.gradient) < EXACT


def test_a_fresh_critic_leaves_the_gradient_of_each_turns_own_reward():
    team = Team("two_step", 2)
    gradient = expected_gradient(fresh(team, central=True))
    # turn 0 of two_step pays nothing, turn 1 is the last
    assert distance(gradient, team.gradient * (team.turns == 1)) < EXACT


@pytest.mark.parametrize("central", [True, False])
def test_td_converges_to_the_mean_return_of_the_chains_through_a_history(central):
    team = Team("dec_tiger", 3)
    trees, _ = team.play(Chain(), 50, seed=1)
    critic, _ = converged(team, central, trees)
    agent = team.agents[1]
    through = {}
    for tree in trees:
        rows = rows_of(team, tree)
        for node in tree.nodes[1:]:
            through.setdefault(critic.number(agent, rows[node.parent]), []).append(
                tree.returns(1.0)[node.index]
            )
    values = critic.values[critic.reader(agent)]
    for number, returns in through.items():
        assert values[number] == pytest.approx(np.mean(returns), rel=1e-9)


def scored(evaluator, network, agent):
    """pi(reply | history) of every legal reply, with its gradient, and dJ / dpi of each."""
    asked = evaluator._asked[agent]
    [row] = asked.rows(None)
    states = mark_states(network, make_batch([row], torch.device("cpu")))
    after = network.base.logits(states).log_softmax(-1)
    place = {mark.node: number for number, mark in enumerate(row.marks)}
    [ids] = asked._asked
    logprobs = torch.stack(
        [
            sum(after[place[at.node], ids[at.node][number]] for at, number in edges)
            for question in asked._questions
            for edges in question
        ]
    )
    slopes = evaluator.evaluate()[1].gradient[agent]
    weights = torch.tensor(np.concatenate([slope.ravel() for slope in slopes])).float()
    return logprobs, weights


def taught(evaluator, networks):
    """Makes every reply that the task accepts likely, as fresh networks speak noise."""
    for agent, network in networks.items():
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
        for _ in range(12):
            logprobs, _ = scored(evaluator, network, agent)
            (-logprobs.mean()).backward()
            optimizer.step()
            optimizer.zero_grad()


@pytest.mark.slow
def test_the_updaters_gradient_is_that_of_the_exact_value_of_the_networks():
    shape = Chain()
    task = TextDecPOMDP(
        problem="two_step", horizon=2, opening="go", turn="{observation}", reward_scale=0.1
    )
    longest = max(len(word) for agent in task.agents for word in task.action_words(agent))
    team = cast(task.agents, shared=False, max_tokens=longest + 1)
    networks = {agent: team.network(agent) for agent in task.agents}
    evaluator = ExactEvaluator(task, team.voices, networks, token_budget=4096)
    taught(evaluator, networks)
    truth = {}
    for agent, network in networks.items():
        logprobs, weights = scored(evaluator, network, agent)
        (task.reward_scale * (weights * logprobs.exp()).sum()).backward()
        truth[agent] = {n: p.grad.clone() for n, p in network.trained().items()}
        network.zero_grad()

    settings = OptimizerSettings(learning_rate=1e-3)
    learners = {a: Recorder(a, networks[a], settings) for a in task.agents}
    parts = Parts(rollout=shape, credit=Shared(), advantage=RawReturn(), loss=PolicyGradient())
    updater = new_updater(parts, learners)
    generator = torch.Generator().manual_seed(0)
    directions = {
        agent: {
            name: torch.stack(
                [slope, *torch.randn(DIRECTIONS, *slope.shape, generator=generator)]
            ).flatten(1)
            for name, slope in slopes.items()
        }
        for agent, slopes in truth.items()
    }

    def projected(slopes):
        return np.concatenate(
            [
                sum(directions[agent][name] @ slope.flatten() for name, slope in by_name.items())
                for agent, by_name in slopes.items()
            ]
        ).astype(float)

    trees, _ = grow(task, list(task.items("train")) * TREES, team.players, shape, seed=0)
    gradients = []
    for number, tree in enumerate(trees):
        updater.update([tree], number)
        # The loss divides by all samples; turn t of a full tree of K has K^(t+1) of them.
        share = (len(tree.nodes) - 1) / shape.group_size
        gradients.append(
            -share * projected({a: learner.recorded for a, learner in learners.items()})
        )
    estimates, expected = np.stack(gradients), projected(truth)
    everything = np.ones(len(expected), dtype=bool)
    result = bias(estimates, expected, everything, seed=0)
    assert min(result.max_t_p, result.norm_p) > LEVEL / FAMILY
    assert bias(estimates, 0.5 * expected, everything, seed=0).max_t_p < LEVEL
