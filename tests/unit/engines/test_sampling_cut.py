"""Top-k and top-p: which tokens are left to draw from, and the log-probabilities of a draw."""

from __future__ import annotations

import math

import pytest
import torch

from colearn.contract import Sampling
from colearn.engines.sampling import TokenDrawing

CHANCES = (0.1, 0.4, 0.2, 0.3)
LOGITS = torch.tensor([CHANCES]).log()


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"top_p": 0.35}, {1}),
        ({"top_p": 0.5}, {1, 3}),  # 0.4 is less than 0.5: the token that crosses it stays
        ({"top_p": 0.75}, {1, 2, 3}),
        ({"top_p": 1e-9}, {1}),
        ({"top_k": 3}, {1, 2, 3}),
        ({"top_k": 2, "top_p": 0.99}, {1, 3}),
        ({"top_k": 3, "top_p": 0.6}, {1, 3}),  # of the 0.9 that top-k leaves, 0.44 and 0.33
        ({}, {0, 1, 2, 3}),
    ],
)
def test_top_p_keeps_the_smallest_set_that_reaches_it(settings: dict, kept: set[int]) -> None:
    drawing = TokenDrawing([Sampling(max_tokens=1, **settings)], torch.device("cpu"))
    drawn = {
        int(drawing.choose(LOGITS, torch.tensor([level], dtype=torch.float64))[0])
        for level in torch.linspace(0.0, 0.999, 200).tolist()
    }
    assert drawn == kept


def test_log_probabilities_are_those_before_the_cut() -> None:
    drawing = TokenDrawing([Sampling(max_tokens=1, top_k=1)], torch.device("cpu"))
    token, logprob = drawing.choose(LOGITS, torch.tensor([0.5], dtype=torch.float64))
    assert int(token) == 1
    assert float(logprob) == pytest.approx(math.log(0.4))
