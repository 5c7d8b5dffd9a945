"""Numbers that foreign code returns: by one reader, and nothing that is no number by half."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from colearn.errors import TaskError
from colearn.programs.gateway.payments import NoReward, number
from colearn.tasks.rewards.function import reward_number
from colearn.text.real_number import real_number

HALVES = (
    *(0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float64(0.5), np.array(0.5)),
    *(torch.tensor(0.5), torch.tensor([0.5]), torch.tensor(0.5, dtype=torch.bfloat16)),
)
NO_NUMBERS = (
    *("0.5", b"1", None, [0.5], {"score": 0.5}, 1 + 0j, np.complex64(1 + 2j), np.complex128(1)),
    *(np.array(1 + 2j), torch.tensor(1 + 2j), np.str_("1"), torch.tensor([1.0, 2.0])),
    *(np.array("1"), 10**5000, [10**5000]),
)


@pytest.mark.parametrize("value", HALVES, ids=repr)
def test_numbers_of_every_library_are_floats(value: Any) -> None:
    assert real_number(value) == reward_number(value, "task") == number(value, "it") == 0.5


@pytest.mark.filterwarnings("error")
def test_a_tensor_with_a_gradient_is_a_number_without_a_warning() -> None:
    assert real_number(torch.tensor(0.5, requires_grad=True)) == 0.5


@pytest.mark.parametrize("value", NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_what_is_no_real_number_is_one_short_line(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^[^\n]{1,60}$"):
        real_number(value)
    if value is not None:  # a reward of None is not scored
        with pytest.raises(TaskError, match=r"^task returned [^\n]+$"):
            reward_number(value, "task")
    with pytest.raises(NoReward, match=r"^it [^\n]+$"):
        number(value, "it")
