"""What an update does, against hand computation: whose advantage, which ratio, which targets, when.

The mistakes that these tests hunt do not stop learning, they bend it; only numbers show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from hand_gradients import reinforce
from local_learners import relative
from tiny import Notes, byte_tokenizer, cast, play, tiny_model
from updates import passes_of, updater_of

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.collm_dc import CoLLMDC
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import OptimizerSettings
from colearn.contract.algorithm import ValueLoss
from colearn.contract.types import Tree
from colearn.methods.advantage.gae import GAE
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import KaryTree
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.reader import fit
from colearn.training.learners.torch_optimizer import rate_factor
from colearn.training.update.metrics import Kept, update_metrics

PLAIN = {"advantage": GAE(), "loss": PolicyGradient(), "value_loss": ValueLoss()}
"""Eq. 2 to 5 as they stand."""


@cache
def played(items):
    """Episodes of `cast(shared=False)`, whose weights are the same in every test."""
    return tuple(play(Notes(items=items), cast(shared=False)))


def held(updater):
    """The gradients of one update, which then moves nothing."""
    by_learner = {}
    for name, learner in updater.actors.learners.items():

        def step(done, name=name, learner=learner):
            by_learner[name] = {k: p.grad.clone() for k, p in learner.parameters.items()}
            return {"grad_norm": 0.0, "learning_rate": 0.0}

        learner.step = step
    return by_learner


# --- the actor's gradient of both critics ---------------------------------------------------------


def told(tree, reader, turn):
    """What a critic has read before the joint action of `turn`, as the design says it: each agent's
    observation, then m_t, then the actions, every piece under its role and turn."""
    agents = tree.agents if reader == "team" else (reader,)
    lines = []
    for node in tree.nodes[: turn + 1]:  # a chain: the node of turn t has number t
        lines += [
            f"\n[{a} {node.turn - 1}]\n{node.actions[a].text}"
            for a in agents
            if node.parent is not None
        ]
        shown = [node.observations[a].text for a in agents]
        if len(set(shown)) == 1 < len(shown):
            lines.append(f"\n[all {node.turn}]\n{shown[0]}")
        else:
            lines += [f"\n[{a} {node.turn}]\n{s}" for a, s in zip(agents, shown, strict=True)]
        lines.append(f"\n[global {node.turn}]\nturn {node.turn}")
    return "".join(lines)


def value(network, text):
    ids = byte_tokenizer()(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        hidden = network.base.causal.model(input_ids=torch.tensor([ids])).last_hidden_state
        return network.head(hidden[0, -1:]).item()


@pytest.mark.parametrize(
    ("algorithm", "reader_of"),
    [(CoLLMCC(**PLAIN), lambda agent: "team"), (CoLLMDC(**PLAIN), lambda agent: agent)],
    ids=["central", "decentral"],
)
def test_an_actor_follows_the_td_errors_of_its_own_critic(algorithm, reader_of):
    """Eq. 2 and 4 by hand: -(1/S) sum of (r + V(h') - V(h)) grad log pi(a|h), and no other sign,
    no other agent's critic."""
    team = cast(shared=False, dtype=torch.float64)
    trees = play(Notes(items=2), team)
    updater = updater_of(algorithm, team)
    networks = {name: learner.network for name, learner in updater.critic.learners.items()}
    by_hand = {}
    for number, agent in enumerate(team.voices):
        reader, advantages = reader_of(agent), []
        for tree in trees:
            values = [value(networks[reader], told(tree, reader, t)) for t in range(3)] + [0.0]
            errors = [
                {agent: node.reward + values[node.turn] - values[node.turn - 1]}
                for node in tree.nodes[1:]
            ]
            advantages.append(({}, *errors))
        model = tiny_model(seed=number, dtype=torch.float64)
        by_hand[agent] = reinforce(model, trees, agent, advantages)
    by_actor = held(updater)
    updater.update(trees, 0)
    assert by_actor.keys() == by_hand.keys()
    for agent, expected in by_hand.items():
        assert relative(expected, by_actor[agent]) < 1e-5


def test_an_update_reports_its_critics_error_as_well():
    """The mean of (r + V(h') - V(h))^2 over the joint actions, by hand, before any step."""
    team = cast(shared=False)
    trees = played(2)
    updater = updater_of(CoLLMCC(**PLAIN), team)
    network, squares = updater.critic.learners["team"].network, []
    for tree in trees:
        values = [value(network, told(tree, "team", t)) for t in range(3)] + [0.0]
        rewards = [node.reward for node in tree.nodes[1:]]
        squares += [
            (r + after - v) ** 2
            for r, after, v in zip(rewards, values[1:], values[:-1], strict=True)
        ]
    metrics = updater.update(trees, 0)
    assert metrics["critic/value_error"] == pytest.approx(sum(squares) / len(squares), rel=1e-5)
    assert "ada/policy_loss" in metrics


# --- several passes over one batch ----------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [CoLLMCC(), MAGRPO()], ids=["critic", "group"])
def test_ratios_are_one_while_the_policy_has_not_moved(algorithm):
    """The old log-probabilities are the policy's own at rollout, in every epoch."""
    team = cast(shared=False)
    trees = play(Notes(items=2), team, algorithm.parts().rollout)
    updater = updater_of(algorithm, team, epochs=2, minibatch=3)
    held(updater)
    metrics = updater.update(trees, 0)
    assert metrics["optimizer_steps"] > 3
    for agent in team.voices:
        assert metrics[f"{agent}/ratio_mean"] == pytest.approx(1.0, abs=1e-4)


def test_ratios_leave_one_when_the_policy_moves():
    team = cast(shared=False)
    trees = played(3)
    metrics = updater_of(CoLLMCC(), team, epochs=3).update(trees, 0)
    assert abs(metrics["ada/ratio_mean"] - 1.0) > 1e-3


@pytest.mark.parametrize(("old", "passes"), [("recompute", 2), ("behaviour", 0)])
def test_behaviour_log_probs_can_serve_as_the_old_ones_and_save_a_pass(monkeypatch, old, passes):
    """The weights moved after the episodes were played: samples know it, a pass cannot."""
    team = cast(shared=False)
    trees = played(3)
    with torch.no_grad():
        for agent in team.voices:
            for weight in team.network(agent).parameters():
                weight.mul_(1.05)
    updater = updater_of(CoLLMCC(loss=PolicyGradient(old_logprobs=old)), team, epochs=3)
    held(updater)
    evaluate, seen = NetworkLearner.evaluate, []

    def counted(self, *args, **settings):
        seen.append(self)
        return evaluate(self, *args, **settings)

    monkeypatch.setattr(NetworkLearner, "evaluate", counted)
    metrics = updater.update(trees, 0)
    assert (
        len([learner for learner in seen if learner in updater.actors.learners.values()]) == passes
    )
    off = abs(metrics["ada/ratio_mean"] - 1.0)
    assert off > 0.01 if old == "behaviour" else off < 1e-6


@cache
def epochs_of(frozen):
    """The mean target of each of three epochs, and its advantages of one agent, while the critic
    learns fast."""
    algorithm = CoLLMCC(**PLAIN | {"value_loss": ValueLoss(frozen_targets=frozen)})
    updater = updater_of(algorithm, cast(shared=False), rate=1e-2, epochs=3)
    of_critic = passes_of(updater.critic.learners["team"])
    of_actor = passes_of(updater.actors.learners["ada"])
    updater.update(played(2), 0)
    targets = [one.accumulated.metrics["target_mean"] for one in of_critic]
    return targets, [[a for row in one.rows for a in row.advantages] for one in of_actor]


def test_frozen_targets_stay_while_the_critic_moves():
    (first, *later), _ = epochs_of(True)
    assert later == pytest.approx([first, first], abs=1e-6)


def test_targets_of_the_current_critic_move_with_it():
    (first, *later), _ = epochs_of(False)
    assert all(abs(one - first) > 1e-3 for one in later)


def test_with_frozen_values_an_advantage_is_that_of_rollout_in_every_epoch():
    _, (first, *later) = epochs_of(True)
    assert later == [first, first]


def test_without_them_it_follows_the_critic():
    _, (first, *later) = epochs_of(False)
    assert all(abs(np.subtract(one, first)).max() > 1e-3 for one in later)


def test_only_one_model_has_gradients_at_a_time():
    """Each pass begins where the critic and the other actor have stepped or not begun."""
    updater = updater_of(CoLLMCC(), cast(shared=False))
    learners = {**updater.actors.learners, **updater.critic.learners}
    passes = []

    def noted(rows, objective, *, name, real):
        accumulated = real(rows, objective)
        holders = [
            other
            for other, learner in learners.items()
            if any(p.grad is not None for p in learner.parameters.values())
        ]
        passes.append((name, holders))
        return accumulated

    for name, learner in learners.items():
        learner.accumulate = partial(noted, name=name, real=learner.accumulate)
    updater.update(played(2), 0)
    assert passes == [("team", ["team"]), ("ada", ["ada"]), ("ben", ["ben"])]


def test_old_logprobs_of_a_history_in_several_contexts_are_those_of_the_first_pass():
    """Bit for bit, also where the rows of a tree do not fit one micro-batch."""
    team = cast(shared=False)
    shown = partial(replace, fresh=True)
    trees = [
        replace(
            tree,
            nodes=tuple(
                replace(node, observations={a: shown(o) for a, o in node.observations.items()})
                for node in tree.nodes
            ),
        )
        for tree in play(Notes(items=3), team, KaryTree(2))
    ]
    updater = updater_of(MAGRPO(loss=PolicyGradient(clip=0.2)), team, epochs=2)
    learner = updater.actors.learners["ada"]
    learner.token_budget = 300
    gaps, real = [], learner.accumulate

    def noted(rows, objective):
        def measured(outputs, batch):
            gap = outputs.logprobs.detach() - batch.per_action("old_logprobs")
            gaps.append(float(gap.abs().max()))
            return objective(outputs, batch)

        return real(rows, measured)

    learner.accumulate = noted
    updater.update(trees, 0)
    first, second = gaps[: len(gaps) // 2], gaps[len(gaps) // 2 :]
    assert len(first) > 1 and max(first) == 0.0 < min(second)


def test_minibatches_are_drawn_anew_in_every_epoch_and_iteration():
    team = cast(shared=False)
    trees = played(6)
    updater = updater_of(CoLLMCC(), team, epochs=3, minibatch=6)
    held(updater)
    passes = passes_of(updater.actors.learners["ada"])

    def seen(iteration):
        passes.clear()
        updater.update(trees, iteration)
        return [sorted({row.tree for row in one.rows}) for one in passes]

    first = seen(0)
    # two episodes of three joint actions in each
    epochs = [first[n : n + 3] for n in (0, 3, 6)]
    assert all(sorted(n for cut in epoch for n in cut) == list(range(6)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert [[0, 1], [2, 3], [4, 5]] not in epochs
    assert seen(1) != first
    assert seen(0) == first


# --- the schedule ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "done", "factor"),
    [
        ("constant", 0.75, 1.0),
        ("linear", 0.0, 1.0),
        ("linear", 0.75, 0.25),
        ("cosine", 0.5, 0.5),
        ("cosine", 0.25, 0.5 + np.sqrt(0.125)),
        ("linear", 1.5, 0.0),
    ],
)
def test_the_rate_follows_the_share_of_the_budget(kind, done, factor):
    assert rate_factor(OptimizerSettings(schedule=kind), 10, done) == pytest.approx(factor)


def test_the_rate_warms_up_by_steps():
    settings = OptimizerSettings(schedule="linear", warmup_steps=4)
    assert [rate_factor(settings, step, 0.5) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 0.5]


# --- the recipe -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dated(PolicyGradient):
    """Notes the shares of the budget that it is asked for."""

    asked: list[float] = field(default_factory=list)

    def at(self, done):
        self.asked.append(done)
        return PolicyGradient()


def test_the_loss_is_that_of_the_share_of_the_budget():
    team = cast(shared=False)
    updater = updater_of(CoLLMCC(loss=Dated()), team)
    updater.update(played(2), 0, done=0.75)
    assert set(updater.parts.loss.asked) == {0.75}


class Reference:
    """A copy of a learner's model, which counts its passes."""

    def __init__(self, learner):
        self.learner, self.passes = learner, 0

    def evaluate(self, rows):
        self.passes += 1
        return self.learner.evaluate(rows)


@pytest.mark.parametrize(("done", "passes"), [(0.25, 1), (0.75, 0)])
def test_the_reference_is_read_until_its_weight_has_annealed_to_0(done, passes):
    loss = PolicyGradient(kl=0.1, anneal_fraction=0.5)
    updater = updater_of(CoLLMCC(loss=loss), cast(shared=False))
    updater.references = {
        name: Reference(learner) for name, learner in updater.actors.learners.items()
    }
    metrics = updater.update(played(2), 0, done=done)
    assert [one.passes for one in updater.references.values()] == [passes, passes]
    assert ("ada/kl" in metrics) == bool(passes)


def optimism_at(done, **level):
    """One agent's advantages, and the expectile that its critic is trained to."""
    parts = {"advantage": GAE(**level), "value_loss": ValueLoss(**level)}
    updater = updater_of(CoLLMCC(**PLAIN | parts), cast(shared=False))
    of_critic = passes_of(updater.critic.learners["team"])
    of_actor = passes_of(updater.actors.learners["ada"])
    updater.update(played(2), 0, done=done)
    advantages = [a for one in of_actor for row in one.rows for a in row.advantages]
    return advantages, of_critic[0].objective.settings.expectile


def test_optimism_is_annealed_with_the_share_of_the_budget_in_advantages_and_critic():
    full, none = optimism_at(0.0, expectile=0.9), optimism_at(0.0)
    assert full[0] != none[0]
    assert optimism_at(0.0, expectile=0.9, anneal_fraction=1.0) == full
    assert optimism_at(1.0, expectile=0.9, anneal_fraction=1.0) == none
    assert optimism_at(0.5, expectile=0.9, anneal_fraction=1.0)[1] == pytest.approx(0.7)


def test_a_critic_takes_no_step_where_no_return_is_scored():
    """AdamW's momentum would move it with gradients of 0, too."""
    updater = updater_of(CoLLMCC(**PLAIN), cast(shared=False))
    updater.update(played(2), 0)
    critic = updater.critic.learners["team"]
    before = {name: weight.clone() for name, weight in critic.weights().items()}
    unscored = [
        replace(tree, nodes=tuple(replace(node, reward=None) for node in tree.nodes))
        for tree in played(2)
    ]
    assert updater.update(unscored, 1)["optimizer_steps"] == 0.0
    assert critic.steps == 1
    assert all(weight.equal(before[name]) for name, weight in critic.weights().items())


def test_an_action_has_an_advantage_though_no_target_of_the_critic_is_scored():
    """With a whole return as target and a TD error as advantage: without the last reward no target
    is known, and the first two of three actions still have theirs."""
    advantage = GAE(lam=0.0, target_lam=1.0)
    updater = updater_of(CoLLMCC(**PLAIN | {"advantage": advantage}), cast(shared=False))
    [tree] = played(1)
    last = replace(tree.nodes[-1], reward=None)
    metrics = updater.update([replace(tree, nodes=(*tree.nodes[:-1], last))], 0)
    assert updater.critic.learners["team"].steps == 0
    assert metrics["advantage/actions"] == 2 * len(tree.agents)
    assert all(learner.steps == 1 for learner in updater.actors.learners.values())


def test_metrics_of_critics_are_means_over_those_that_took_a_step():
    """V is 0, so that the targets are the rewards."""
    updater = updater_of(CoLLMDC(**PLAIN), cast(shared=False), head=0.0)
    trees, critics = updater.parts.credited(played(2)), updater.critic
    rows = critics.rows(trees) | {"ben": {}}  # as where ben did not act
    parts, episodes = updater.parts, dict(enumerate(trees))
    objective = partial(critics.objective, parts.advantage, parts.value_loss, episodes=episodes)
    steps = fit(critics.minibatches(rows, [0, 1], objective), 0.0)
    metrics = update_metrics(Kept(parts=parts, trees=trees, joint_steps=[steps]))
    rewards = [node.reward for tree in trees for node in tree.nodes[1:]]
    assert metrics["critic/target_mean"] == pytest.approx(np.mean(rewards))


def test_the_mean_value_is_that_of_the_values_which_the_advantages_use():
    """Not of values between the steps."""
    value_loss = ValueLoss(frozen_targets=True)
    settings = PLAIN | {"value_loss": value_loss}
    updater = updater_of(CoLLMCC(**settings), cast(shared=False), epochs=2)
    trees = updater.parts.credited(played(2))
    by_tree = updater.critic.values(trees)
    used = [v for values in by_tree for own in values.values() for v in own if v is not None]
    metrics = updater.update(played(2), 0)
    assert metrics["critic/value_mean"] == pytest.approx(np.mean(used))


class Shifted(Notes):
    """The same game, every reward lower by ten."""

    def step(self, state, actions, rng):
        outcome = super().step(state, actions, rng)
        return replace(outcome, reward=outcome.reward - 10.0)


@pytest.mark.parametrize("algorithm", [CoLLMCC, CoLLMDC], ids=["central", "decentral"])
def test_a_shifted_reward_does_not_erase_the_sign_of_clipped_advantages(algorithm):
    """With V = 0 every clipped advantage would be -0.05, whatever the agents said."""
    settings = ValueLoss(rescale=True)
    chosen = algorithm(advantage=GAE(clip=0.05), value_loss=settings)
    team = cast(shared=False)
    trees = play(Shifted(horizon=1, items=4), team)
    updater = updater_of(chosen, team, head=0.0)
    seen = []
    real = updater.parts.advantage.__class__.__call__

    def noted(self, episodes, values=None):
        seen.extend(real(self, episodes, values))
        return seen[-len(episodes) :]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GAE, "__call__", noted)
        updater.update(trees, 0)
    signs = {at["ada"] > 0 for one in seen for at in one[1:]}
    assert signs == {True, False}


@pytest.mark.parametrize(("level", "centre"), [(0.5, 2.5), (0.9, 4.5)])
def test_an_optimistic_critic_starts_at_the_expectile_of_the_first_returns(
    monkeypatch, level, centre
):
    """Returns 0 and 5 alike: 9 (5 - e) = e. From their mean the first updates would prefer what is
    safe, whatever the critic hopes for later."""
    settings = ValueLoss(rescale=True, expectile=level)
    team = cast(shared=False)
    trees = play(Notes(horizon=1, items=2), team)
    updater = updater_of(CoLLMCC(value_loss=settings), team, head=0.0)
    monkeypatch.setattr(Tree, "returns_of", lambda self, agent: (0.0, 5.0 * self.episode))
    held(updater)
    updater.update(trees, 0)
    assert updater.critic.learners["team"].network.head.scale[0].item() == pytest.approx(centre)
