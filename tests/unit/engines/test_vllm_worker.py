"""What runs inside a vLLM worker: log-probabilities from before the cuts, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from colearn.engines.vllm_worker import WorkerExtension

LOGITS = torch.tensor([[0.0, math.log(2.0), math.log(5.0)], [math.log(6.0), 0.0, 0.0]])
"""Of tokens with probabilities 1/8, 2/8, 5/8, and 6/8, 1/8, 1/8."""


class Draw(nn.Module):
    """vLLM's draw: notes what it is given, draws token 1, and returns scores after the cuts."""

    def forward(self, logits: Tensor, generators: Any, top_k: Any, top_p: Any) -> Any:
        self.given = logits, generators, top_k, top_p
        return torch.tensor([1, 1]), torch.full_like(logits, -torch.inf)


@pytest.fixture
def worker() -> Any:
    extended = WorkerExtension()
    extended.model_runner = SimpleNamespace(sampler=SimpleNamespace(topk_topp_sampler=Draw()))
    return extended


def test_scores_are_log_probabilities_of_all_tokens(worker: Any) -> None:
    worker.score_before_cuts()
    _, scores = worker.model_runner.sampler.topk_topp_sampler(LOGITS, {}, None, None)
    expected = torch.tensor([[1 / 8, 2 / 8, 5 / 8], [6 / 8, 1 / 8, 1 / 8]]).log()
    assert torch.allclose(scores, expected, atol=1e-6)


def test_scores_of_bfloat16_are_summed_in_float32(worker: Any) -> None:
    worker.score_before_cuts()
    even = torch.zeros(1, 3, dtype=torch.bfloat16)
    _, scores = worker.model_runner.sampler.topk_topp_sampler(even, {}, None, None)
    assert scores[0].tolist() == pytest.approx([-math.log(3)] * 3, abs=1e-6)


def test_the_draw_is_vllms_with_its_cuts(worker: Any) -> None:
    draw = worker.model_runner.sampler.topk_topp_sampler
    worker.score_before_cuts()
    top_k, top_p = torch.tensor([2, 3]), torch.tensor([0.5, 1.0])
    tokens, _ = worker.model_runner.sampler.topk_topp_sampler(LOGITS, {0: "own"}, top_k, top_p)
    assert tokens.tolist() == [1, 1]
    assert all(one is other for one, other in zip(draw.given[2:], (top_k, top_p), strict=True))
    assert draw.given[0] is LOGITS and draw.given[1] == {0: "own"}


def test_a_second_call_changes_nothing(worker: Any) -> None:
    worker.score_before_cuts()
    once = worker.model_runner.sampler.topk_topp_sampler
    worker.score_before_cuts()
    assert worker.model_runner.sampler.topk_topp_sampler is once
