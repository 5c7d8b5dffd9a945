"""The parts of the update's recipe that are arithmetic: schedules, scales, weights, rates."""

from __future__ import annotations

import pytest
import torch
from trees import tree

from colearn.advantage.bootstrap import Bootstrap
from colearn.advantage.group_expectile import GroupExpectile
from colearn.advantage.group_mean import GroupMean
from colearn.advantage.turns import path_weights
from colearn.config import OptimizerSettings
from colearn.contract import ValueLoss
from colearn.errors import ConfigError
from colearn.learn.local import LocalLearner
from colearn.learn.minibatch import minibatches
from colearn.loss.policy_gradient import PolicyGradient
from colearn.models.network import ValueHead
from colearn.types import Credited


def test_kl_and_entropy_fall_over_their_share_of_the_budget():
    loss = PolicyGradient(kl=0.1, entropy=0.02, anneal=0.5)
    quarter = loss.at(0.25)
    assert (quarter.kl, quarter.entropy) == (pytest.approx(0.05), pytest.approx(0.01))
    assert (loss.at(0.0).kl, loss.at(0.5).kl, loss.at(0.9).kl) == (0.1, 0.0, 0.0)
    assert loss.at(0.5).needs_reference is False
    assert quarter.at(0.9) == quarter, "what stands for a share of the budget fades no more"


def test_without_a_schedule_the_loss_stays():
    loss = PolicyGradient(kl=0.1)
    assert loss.at(0.7) is loss


HOPEFUL = [
    (Bootstrap, "expectile"),
    (GroupExpectile, "level"),
    (ValueLoss, "expectile"),
]


@pytest.mark.parametrize(("part", "level"), HOPEFUL)
def test_an_expectile_comes_to_the_mean_over_its_share_of_the_budget(part, level):
    hopeful = part(**{level: 0.9}, anneal=0.5)
    found = [getattr(hopeful.at(done), level) for done in (0.0, 0.25, 0.5, 0.9)]
    assert found == pytest.approx([0.9, 0.7, 0.5, 0.5])
    assert getattr(part(**{level: 0.9}).at(0.9), level) == 0.9


@pytest.mark.parametrize("part", [PolicyGradient, *(part for part, _ in HOPEFUL)])
@pytest.mark.parametrize("anneal", [0.0, 1.5])
def test_a_schedule_over_no_part_of_the_budget_is_refused(part, anneal):
    with pytest.raises(ConfigError, match="anneal: must lie above 0 and up to 1"):
        part(anneal=anneal)


def value(head, number=1.0):
    return head(torch.full((1, 2), number)).item()


def test_a_head_starts_at_the_centre_of_the_first_returns():
    head = ValueHead(2)
    assert value(head) == 0.0
    head.observe([-12.0, -8.0], -9.0)
    assert value(head) == pytest.approx(-9.0)
    with torch.no_grad():
        head.linear.bias.fill_(1.0)
    assert value(head) == pytest.approx(-7.0)  # one deviation above


def test_a_scale_moves_by_its_share_of_what_it_has_seen_and_by_a_twentieth_in_the_end():
    head = ValueHead(2)
    head.observe([0.0, 2.0], 1.0)
    head.observe([10.0, 14.0], 12.0)  # half the way: mean (1 + 12) / 2, deviation (1 + 2) / 2
    assert head.scale[:2].tolist() == pytest.approx([6.5, 1.5])
    for _ in range(100):
        head.observe([0.0, 0.0], 0.0)
    before = head.scale[0].item()
    head.observe([1.0, 1.0], 1.0)
    assert head.scale[0].item() - before == pytest.approx(0.05 * (1.0 - before), abs=1e-6)


def test_equal_returns_leave_a_unit_to_speak_in():
    head = ValueHead(2)
    head.observe([3.0, 3.0], 3.0)
    assert 0.0 < head.scale[1].item() < 0.01


class Headed(torch.nn.Module):
    """As much of a network as an optimiser sees."""

    def __init__(self):
        super().__init__()
        self.head = ValueHead(2)
        self.body = torch.nn.Parameter(torch.zeros(2))
        self.base = type("Base", (), {"device": torch.device("cpu")})

    def trained(self):
        return {"model.body": self.body, "head.linear.weight": self.head.linear.weight}

    def state(self):
        return {**self.trained(), "head.scale": self.head.scale}


def test_a_heads_rate_is_its_own_and_follows_the_same_schedule():
    settings = OptimizerSettings(learning_rate=1e-3, head_learning_rate=1e-2, schedule="linear")
    learner = LocalLearner("critic", Headed(), settings, token_budget=64)
    for parameter in learner.parameters.values():
        parameter.grad = torch.ones_like(parameter)
    assert learner.step(0.25)["learning_rate"] == pytest.approx(0.75e-3)
    # AdamW's first step is the rate itself, against the gradient's sign
    assert learner.network.body[0].item() == pytest.approx(-0.75e-3, rel=1e-3)
    assert learner.network.head.linear.weight[0, 0].item() == pytest.approx(-0.75e-2, rel=1e-3)


def test_a_checkpoint_holds_the_scale(tmp_path):
    learner = LocalLearner("critic", Headed(), OptimizerSettings(), token_budget=64)
    learner.observe([1.0, 5.0], 3.0)
    learner.save(tmp_path)
    other = LocalLearner("critic", Headed(), OptimizerSettings(), token_budget=64)
    other.load(tmp_path)
    assert other.network.head.scale.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("turns", "size", "expected"),
    [
        ([6] * 43, 128, [132, 126]),  # and no rest of one episode
        ([6] * 43, 64, [66, 66, 60, 66]),
        ([1] * 10, 64, [10]),
        ([20] * 3, 4, [20, 20, 20]),  # episodes stay whole
    ],
)
def test_minibatches_are_about_equally_large(turns, size, expected):
    trees = [tree([(node, 0.0) for node in range(count)]) for count in turns]
    cuts = list(minibatches(trees, size, range(len(trees))))
    assert [sum(turns[number] for number in cut) for cut in cuts] == expected
    assert sorted(number for cut in cuts for number in cut) == list(range(len(trees)))


def test_a_turn_weighs_alike_in_trees_that_end_early():
    # two turns of two joint actions each; and a tree whose two actions both end the episode
    whole = tree([(0, 0.0), (0, 0.0), (1, 0.0), (1, 0.0), (2, 0.0), (2, 0.0)])
    short = tree([(0, 0.0), (0, 0.0)])
    long_weights, short_weights = path_weights([whole, short])
    # path probabilities 1/2 and 1/4; their mean over all eight joint actions is 3/8
    assert long_weights == pytest.approx([0.0, 4 / 3, 4 / 3, *[2 / 3] * 4])
    assert short_weights == pytest.approx([0.0, 4 / 3, 4 / 3])
    assert sum(long_weights[1:3]) == pytest.approx(sum(long_weights[3:]))


def credited(grown):
    rewards = tuple(dict.fromkeys(grown.agents, node.reward) for node in grown.nodes)
    return Credited(tree=grown, rewards=rewards)


def test_a_normalised_group_advantage_has_unit_deviation_over_the_iteration():
    episodes = [credited(tree([(0, 0.0), (0, 4.0)])), credited(tree([(0, 1.0), (0, 1.0)]))]
    plain = GroupMean()(episodes)
    assert [at["alice"] for at in plain[0][1:]] == [-2.0, 2.0]
    found = GroupMean(normalize=True)(episodes)
    # -2, 2, 0, 0: mean 0, deviation the root of 2
    assert [at["bob"] for one in found for at in one[1:]] == pytest.approx(
        [-(2**0.5), 2**0.5, 0.0, 0.0], abs=1e-5
    )
