"""A value head in closed form, against numpy's least squares and against leaving rows out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from colearn.training.learners.ridge import _PENALTIES, ridge


def rows(number: int, width: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(number, width)) * np.linspace(2.0, 0.1, width) + 3.0
    return states, 5.0 + states @ rng.normal(size=width) + noise * rng.normal(size=number)


def solved(states: np.ndarray, targets: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """By numpy: least squares with a row of sqrt(penalty) for each weight."""
    mean, level = states.mean(0), targets.mean()
    centred = states - mean
    largest = np.linalg.eigvalsh(centred.T @ centred).max()
    added = np.sqrt(penalty * largest) * np.eye(states.shape[1])
    weights = np.linalg.lstsq(
        np.vstack([centred, added]),
        np.concatenate([targets - level, np.zeros(states.shape[1])]),
        rcond=None,
    )[0]
    return weights, level - mean @ weights


def left_out(states: np.ndarray, targets: np.ndarray, penalty: float) -> float:
    """Mean squared error at each row by the regression on all others, with the penalty of all."""
    centred = states - states.mean(0)
    fixed = penalty * np.linalg.eigvalsh(centred.T @ centred).max()
    errors = []
    for number in range(len(states)):
        others = np.arange(len(states)) != number
        some = states[others] - states[others].mean(0)
        own = fixed / np.linalg.eigvalsh(some.T @ some).max()
        weights, bias = solved(states[others], targets[others], own)
        errors.append(targets[number] - states[number] @ weights - bias)
    return float(np.mean(np.square(errors)))


@pytest.mark.parametrize("noise", [0.01, 1.0, 3.0])
def test_the_head_is_numpy_s_at_the_penalty_of_the_least_error_on_rows_left_out(
    noise: float,
) -> None:
    states, targets = rows(48, 6, noise)
    best = min(_PENALTIES, key=lambda one: left_out(states, targets, one))
    weights, bias = ridge(torch.tensor(states), torch.tensor(targets))
    expected, level = solved(states, targets, best)
    assert weights.numpy() == pytest.approx(expected, rel=1e-6)
    assert float(bias) == pytest.approx(level, rel=1e-6)


def test_states_that_say_nothing_are_left_out() -> None:
    rng = np.random.default_rng(1)
    states, targets = rng.normal(size=(12, 8)), rng.normal(size=12)
    weights, bias = ridge(torch.tensor(states), torch.tensor(targets))
    assert weights.abs().max() < 0.1
    assert float(bias) == pytest.approx(targets.mean(), abs=0.1)


@pytest.mark.parametrize("states", [torch.zeros(3, 2), torch.ones(1, 4)])
def test_equal_states_and_a_single_row_give_the_mean(states: torch.Tensor) -> None:
    targets = torch.arange(1.0, len(states) + 1).double()
    weights, bias = ridge(states.double(), targets)
    assert not weights.any() and float(bias) == float(targets.mean())
