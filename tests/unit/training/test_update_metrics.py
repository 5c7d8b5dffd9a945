"""What an update tells of its minibatches and trains in its rows, by hand."""

from __future__ import annotations

from collections.abc import Mapping

from trees import chain

from colearn.algorithms.collm_dc import CoLLMDC
from colearn.contract import Accumulated, NetworkKey
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.training.learners.reader import StepResult
from colearn.training.update.advantages import advantaged_row
from colearn.training.update.metrics import Kept, update_metrics


def critics(
    **losses: tuple[float, Mapping[str, float]],
) -> dict[NetworkKey, StepResult]:
    return {
        NetworkKey("critic", name): StepResult(Accumulated({"loss": loss}, {}), stepped)
        for name, (loss, stepped) in losses.items()
    }


def test_a_metric_of_value_models_is_their_mean_and_that_of_a_step_is_each_model_s() -> None:
    kept = Kept(parts=CoLLMDC().parts(), trees=[chain([1.0])])
    kept.joint_steps = [critics(ada=(1.0, {"grad_norm": 5.0}), ben=(3.0, {"grad_norm": 7.0}))]
    metrics = update_metrics(kept)
    assert metrics["critic/loss"] == 2.0
    assert metrics["critic/ada/grad_norm"] == 5.0 and metrics["critic/ben/grad_norm"] == 7.0


def test_minibatches_of_a_critic_s_own_schedule_count_as_those_of_the_joint_one() -> None:
    kept = Kept(parts=CoLLMDC().parts(), trees=[chain([1.0])])
    kept.critic_steps = [critics(ada=(5.0, {}), ben=(7.0, {}))]
    kept.joint_steps = [critics(ada=(1.0, {}), ben=(3.0, {}))]
    assert update_metrics(kept)["critic/loss"] == (6.0 + 2.0) / 2


def test_the_numbers_of_a_row_are_those_of_its_actions_that_have_an_advantage() -> None:
    # actions of two tokens at node 1 and of one at node 2; the first has no advantage
    row = Row(
        tree=0,
        reader="ada",
        tokens=(9, 1, 2, 9, 3),
        pieces=(Piece(0, 5, -1, 0, 0),),
        marks=(),
        spans=(ActionTokens(1, 1, 3, 0), ActionTokens(2, 4, 5, 3)),
        behaviour=(0.1, 0.2, 0.3),
        old_logprobs=(1.1, 1.2, 1.3),
        ref_logprobs=(2.1, 2.2, 2.3),
        teacher_logprobs=(3.1, 3.2, 3.3),
    )
    left = advantaged_row(row, ({}, {}, {"ada": 4.0}))
    assert [span.node for span in left.spans] == [2] and left.advantages == (4.0,)
    assert (left.behaviour, left.old_logprobs) == ((0.3,), (1.3,))
    assert (left.ref_logprobs, left.teacher_logprobs) == ((2.3,), (3.3,))
