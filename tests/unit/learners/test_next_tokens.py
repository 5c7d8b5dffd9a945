"""Probabilities of the next token by temperature, by hand."""

from __future__ import annotations

from math import log

import pytest
import torch

from colearn.training.learners.next_tokens import _probabilities

LOGITS = torch.tensor([[0.0, log(3.0), log(4.0)], [log(6.0), 0.0, 0.0]], dtype=torch.float64)


def test_at_temperature_one_probabilities_are_those_of_the_logits() -> None:
    rows = _probabilities(LOGITS, 1.0).tolist()
    assert rows == [pytest.approx([1 / 8, 3 / 8, 4 / 8]), pytest.approx([6 / 8, 1 / 8, 1 / 8])]


def test_a_temperature_of_a_half_squares_the_odds() -> None:
    assert _probabilities(LOGITS, 0.5)[0].tolist() == pytest.approx([1 / 26, 9 / 26, 16 / 26])


def test_greedy_decoding_draws_the_likeliest_token_with_probability_one() -> None:
    assert _probabilities(LOGITS, 0.0).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
