"""Arithmetic of the update: schedules, scales, weights, rates, and gradient steps by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from local_learners import local_learner
from trees import tree

from colearn.config import OptimizerSettings
from colearn.contract import ValueLoss
from colearn.contract.rows import ActionTokens, Mark, Outputs, Piece, Row
from colearn.errors import CheckpointError, ConfigError
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.group_baseline import GroupExpectile
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.network import ValueHead
from colearn.training.learners.batch import make_batch
from colearn.training.learners.copies import NetworkCopy
from colearn.training.learners.minibatch import minibatches
from colearn.training.update.objective import ActorObjective


def test_kl_and_entropy_fall_over_their_share_of_the_budget():
    loss = PolicyGradient(kl=0.1, entropy=0.02, anneal_fraction=0.5)
    quarter = loss.at(0.25)
    assert (quarter.kl, quarter.entropy) == (pytest.approx(0.05), pytest.approx(0.01))
    assert (loss.at(0.0).kl, loss.at(0.5).kl, loss.at(0.9).kl) == (0.1, 0.0, 0.0)
    assert loss.at(0.5).needs_reference is False
    assert quarter.at(0.9) == quarter, "what stands for a share of the budget fades no more"


def test_a_teachers_weight_falls_with_the_penalties_so_that_the_reward_decides_in_the_end():
    loss = PolicyGradient(teacher=0.4, anneal_fraction=0.5)
    assert [loss.at(done).teacher for done in (0.0, 0.25, 0.5)] == [0.4, pytest.approx(0.2), 0.0]
    assert loss.at(0.5).needs_teacher is False


def test_without_a_schedule_the_loss_stays():
    loss = PolicyGradient(kl=0.1)
    assert loss.at(0.7) is loss


HOPEFUL = [
    (GAE, "expectile"),
    (GroupExpectile, "level"),
    (ValueLoss, "expectile"),
]


@pytest.mark.parametrize(("part", "level"), HOPEFUL)
def test_an_expectile_comes_to_the_mean_over_its_share_of_the_budget(part, level):
    optimistic = part(**{level: 0.9}, anneal_fraction=0.5)
    levels = [getattr(optimistic.at(done), level) for done in (0.0, 0.25, 0.5, 0.9)]
    assert levels == pytest.approx([0.9, 0.7, 0.5, 0.5])
    assert getattr(part(**{level: 0.9}).at(0.9), level) == 0.9


@pytest.mark.parametrize("part", [PolicyGradient, *(part for part, _ in HOPEFUL)])
@pytest.mark.parametrize("anneal_fraction", [0.0, 1.5])
def test_a_schedule_over_no_part_of_the_budget_is_refused(part, anneal_fraction):
    with pytest.raises(ConfigError, match="anneal_fraction: must lie above 0 and up to 1"):
        part(anneal_fraction=anneal_fraction)


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
    """The part of a network that an optimiser uses."""

    def __init__(self):
        super().__init__()
        self.head = ValueHead(2)
        self.body = torch.nn.Parameter(torch.zeros(2))
        self.base = type("Base", (), {"device": torch.device("cpu"), "revision": 0})

    def trained(self):
        return {"model.body": self.body, "head.linear.weight": self.head.linear.weight}

    def state(self):
        return {**self.trained(), "head.scale": self.head.scale}

    def forward(self, batch, *, entropy=False):
        return Outputs(logprobs=self.body[:1], entropy=None, values=self.body[1:])


def learner(**settings):
    return local_learner("critic", Headed(), OptimizerSettings(**settings), token_budget=64)


def stepped(one, body=None, head=None):
    """One step on these gradients; None: the weights have no gradient."""
    one.network.body.grad = None if body is None else torch.tensor(body)
    one.network.head.linear.weight.grad = None if head is None else torch.tensor([head])
    return one.step(0.0)


def test_a_gradient_that_is_too_long_is_cut_to_length_and_told_as_it_was():
    cut, whole = learner(max_grad_norm=1.0), learner(max_grad_norm=10.0)
    assert stepped(cut, [3.0, 0.0], [0.0, 4.0])["grad_norm"] == pytest.approx(5.0)
    assert stepped(whole, [3.0, 0.0], [0.0, 4.0])["grad_norm"] == pytest.approx(5.0)
    # Adam's first moment holds a tenth of the gradient that it was given
    moments = [
        one.optimizer.wrapped.state[one.network.body]["exp_avg"][0].item() for one in (cut, whole)
    ]
    assert moments == pytest.approx([0.1 * 3.0 / 5.0, 0.1 * 3.0], rel=1e-4)


def test_what_an_update_does_not_reach_stays_where_it_is():
    """Without a gradient AdamW leaves a weight alone; a zero would move it by its momentum."""
    one = learner()
    stepped(one, [1.0, 1.0], [1.0, 1.0])
    assert one.network.body.grad is None
    before = one.network.body.tolist()
    one.network.head.linear.weight.grad = torch.ones(1, 2)
    one.step(0.0)
    assert one.network.body.tolist() == before


def test_a_gradient_that_is_not_finite_moves_nothing_and_is_one_line():
    one = learner()
    stepped(one, [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(FloatingPointError, match=r"^critic: the gradient of update 2 is nan; "):
        stepped(one, [math.nan, 1.0])
    assert one.network.body.tolist() == [0.0, 0.0] and one.steps == 1


def test_a_loss_that_is_not_finite_is_told_by_its_place():
    rows = [Row(tokens=(n + 1,) * 40, pieces=(Piece(0, 40, -1, 0, 0),), tree=n) for n in (0, 1)]

    def objective(outputs, batch):
        bad = any(row.tree == 1 for row in batch.rows)
        return outputs.logprobs.sum() * (math.nan if bad else 1.0), {}

    line = r"^critic: the loss of update 1, micro-batch 2 \(1 rows\) is nan; lower the"
    with pytest.raises(FloatingPointError, match=line):
        one = learner()
        one.accumulate(rows, objective)


def test_metrics_add_up_over_micro_batches():
    rows = [Row(tokens=(n,) * 40, pieces=(Piece(0, 40, -1, 0, 0),), tree=n) for n in (1, 2)]

    def objective(outputs, batch):
        return outputs.logprobs.sum(), {"keys": float(sum(row.tree for row in batch.rows))}

    one = learner()
    assert one.accumulate(rows, objective).metrics == {"keys": 3.0}
    assert one.network.body.grad.tolist() == [2.0, 0.0]


def test_a_heads_rate_is_its_own_and_follows_the_same_schedule():
    settings = OptimizerSettings(learning_rate=1e-3, head_learning_rate=1e-2, schedule="linear")
    learner = local_learner("critic", Headed(), settings, token_budget=64)
    for parameter in learner.parameters.values():
        parameter.grad = torch.ones_like(parameter)
    assert learner.step(0.25)["learning_rate"] == pytest.approx(0.75e-3)
    # AdamW's first step is the rate itself, against the gradient's sign
    assert learner.network.body[0].item() == pytest.approx(-0.75e-3, rel=1e-3)
    assert learner.network.head.linear.weight[0, 0].item() == pytest.approx(-0.75e-2, rel=1e-3)


def test_a_checkpoint_holds_the_scale(tmp_path):
    learner = local_learner("critic", Headed(), OptimizerSettings(), token_budget=64)
    learner.observe([1.0, 5.0], 3.0)
    learner.save(tmp_path)
    other = local_learner("critic", Headed(), OptimizerSettings(), token_budget=64)
    other.load(tmp_path)
    assert other.network.head.scale.tolist() == [3.0, 2.0, 1.0]


def test_a_checkpoint_holds_the_momentum_and_the_steps(tmp_path):
    one, other = (learner(learning_rate=1e-3, warmup_steps=4) for _ in range(2))
    stepped(one, [1.0, -2.0], [0.5, 0.5])
    one.save(tmp_path / "run" / "newest")
    other.load(tmp_path / "run" / "newest")
    steps = [stepped(each, [0.0, 1.0], [0.1, 0.0]) for each in (one, other)]
    assert steps[0] == steps[1] and steps[0]["learning_rate"] == pytest.approx(0.5e-3)
    assert other.network.body.tolist() == one.network.body.tolist()


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "learner.json"])
@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_a_damaged_file_of_a_checkpoint_is_named(tmp_path, name, damage):
    one = learner()
    stepped(one, [1.0, 1.0], [1.0, 1.0])
    one.save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    if damage == "cut short":
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    line = rf"{name}: cannot be read \(.*\w.*\); remove this checkpoint and resume from an"
    with pytest.raises(CheckpointError, match=line) as error:
        learner().load(tmp_path)
    assert "\n" not in str(error.value)


class Policy:
    """The part of a network and its learner that a moving copy uses."""

    def __init__(self, adapter, *numbers):
        self.adapter = adapter
        self.base = SimpleNamespace(revision=0)
        self.adapter_weights = {f"adapter.a.{adapter}.w": torch.tensor(numbers)}

    def trained(self):
        return self.adapter_weights

    def weights(self):
        return self.adapter_weights | {"head.linear.weight": torch.tensor([9.0])}


def test_a_frozen_copy_takes_its_models_words_and_not_its_values():
    model, copy = Policy("now", 1.0, 2.0), Policy("then", 0.0, 0.0)
    NetworkCopy(model, model, copy, token_budget=8).copy_weights()
    assert {name: weight.tolist() for name, weight in copy.adapter_weights.items()} == {
        "adapter.a.then.w": [1.0, 2.0]
    }


def test_a_frozen_copy_is_kept_beside_its_model(tmp_path):
    copy, again = Policy("then", 3.0, 4.0), Policy("then", 0.0, 0.0)
    NetworkCopy(copy, copy, copy, token_budget=8).save(tmp_path / "reference")
    NetworkCopy(again, again, again, token_budget=8).load(tmp_path / "reference")
    assert again.adapter_weights["adapter.a.then.w"].tolist() == [3.0, 4.0]
    with pytest.raises(CheckpointError, match=r"another model's weights \(first difference: "):
        NetworkCopy(again, again, Policy("else", 0.0, 0.0), token_budget=8).load(
            tmp_path / "reference"
        )
    with pytest.raises(CheckpointError, match=r"has shape \(2,\), the model \(1,\); resume with"):
        NetworkCopy(again, again, Policy("then", 0.0), token_budget=8).load(tmp_path / "reference")


# --- what an objective tells -------------------------------------------------------------------


def said(*behaviour, old=()):
    """An action with this many tokens after a one-token prompt."""
    end = 1 + len(behaviour)
    return Row(
        tokens=(9, *range(1, end)),
        pieces=(Piece(0, end, -1, 0, 0),),
        spans=(ActionTokens(1, 1, end, 0),),
        behaviour=behaviour,
        old_logprobs=old,
        advantages=(2.0,),
    )


def measured(rows, part, logprobs, values=(), settings=None):
    """Loss and metrics of the micro-batch `part` of the minibatch `rows`."""
    objective = ActorObjective.of(PolicyGradient(), settings or ValueLoss(), rows)
    outputs = Outputs(
        logprobs=torch.tensor(logprobs, requires_grad=True),
        entropy=None,
        values=torch.tensor(values, requires_grad=True),
    )
    return objective(outputs, make_batch(part, torch.device("cpu")))


def test_metrics_of_tokens_are_shares_of_the_whole_minibatch():
    """Three of four tokens: ln pi is 0.5, 0 and 0.5 above the old one, which is 0, 0 and 1.5 below
    the behaviour's."""
    first = said(-1.5, -2.0, -2.0, old=(-1.5, -2.0, -3.5))
    _, metrics = measured([first, said(-1.0, old=(-1.0,))], [first], [-1.0, -2.0, -3.0])
    assert metrics["nll"] == pytest.approx(6.0 / 4)
    assert metrics["logprob_mismatch"] == pytest.approx(1.5 / 4)
    assert metrics["approx_kl"] == pytest.approx(2 * (math.exp(0.5) - 1.5) / 4)


def test_before_the_first_step_the_policy_is_its_own_old_one():
    row = said(-1.25)
    _, metrics = measured([row], [row], [-1.0])
    assert metrics["nll"] == pytest.approx(1.0)
    assert metrics["logprob_mismatch"] == pytest.approx(0.25)
    assert "approx_kl" not in metrics


def test_a_head_on_the_actor_learns_values_where_no_action_has_an_advantage():
    """Two value targets: (3 - 1)^2 / 2; with V clipped at 1.5 + 0.25, (3 - 1.75)^2 / 2."""
    first, second = (
        Row(
            tokens=(n,),
            pieces=(Piece(0, 1, -1, 0, 0),),
            marks=(Mark(0, 0),),
            targets=(3.0,),
            old_values=(1.5,),
        )
        for n in (1, 2)
    )
    loss, metrics = measured([first, second], [first], [], [1.0])
    assert loss.item() == metrics["value_loss"] == pytest.approx(4.0 / 2)
    assert metrics["nll"] == metrics["logprob_mismatch"] == 0.0
    clipped, _ = measured([first, second], [first], [], [2.5], ValueLoss(clip=0.25))
    assert clipped.item() == pytest.approx((3.0 - 1.75) ** 2 / 2)


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


def test_minibatches_of_episodes_are_as_many_however_early_episodes_end():
    for turns in ([8] * 128, [1] * 128, [8, 1] * 64):
        trees = [tree([(node, 0.0) for node in range(count)]) for count in turns]
        assert [len(cut) for cut in minibatches(trees, 64, range(128), "episodes")] == [64, 64]
    assert [len(cut) for cut in minibatches(trees[:100], 64, range(100), "episodes")] == [50, 50]
