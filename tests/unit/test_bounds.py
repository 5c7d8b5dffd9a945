"""Bounds stand on the fields, and an error is one line with the range and what is usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from pydantic import Field

from colearn.contract import Advantage
from colearn.contract.bounds import check_bounds
from colearn.errors import ConfigError

pytestmark = pytest.mark.fast


@dataclass
class Settings:
    both: Annotated[float, Field(ge=0.0, le=1.0, description="0.95 is usual")] = 0.5
    between: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.5
    above: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    below: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.5
    count: Annotated[int, Field(ge=2)] = 2
    positive: Annotated[float, Field(gt=0.0)] | None = None
    choice: Literal["a", "b", "c"] = "a"
    free: float = -1.0


def test_what_lies_within_passes():
    check_bounds(Settings())
    check_bounds(Settings(both=1.0, between=0.99, above=1.0, below=0.0, count=2, positive=1e9))


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"both": 1.5}, "both: must lie in 0 to 1, got 1.5; 0.95 is usual"),
        ({"both": float("nan")}, "both: must lie in 0 to 1, got nan; 0.95 is usual"),
        ({"between": 1.0}, "between: must lie between 0 and 1, got 1.0"),
        ({"above": 0.0}, "above: must lie above 0 and up to 1, got 0.0"),
        ({"below": 1.0}, "below: must be at least 0 and below 1, got 1.0"),
        ({"count": 1}, "count: must be 2 or more, got 1"),
        ({"count": 2.5}, "count: must be 2 or more, got 2.5"),
        ({"positive": 0.0}, "positive: must be above 0, got 0.0"),
        ({"choice": "d"}, "choice: unknown 'd'; use a, b or c"),
    ],
)
def test_what_lies_outside_is_one_line(setting, error):
    with pytest.raises(ConfigError) as caught:
        check_bounds(Settings(**setting))
    assert str(caught.value) == error


def test_a_part_of_another_package_has_its_bounds_checked():
    @dataclass(frozen=True, kw_only=True)
    class Theirs(Advantage):
        weight: Annotated[float, Field(gt=0.0)] = 1.0

        def __call__(self, episodes, values=None):
            return []

    assert Theirs(weight=2.0).weight == 2.0
    with pytest.raises(ConfigError, match=r"^weight: must be above 0, got -1.0$"):
        Theirs(weight=-1.0)
