"""Settings of the task `gateway` that no program could be played with."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.task import Gateway

ITEMS = "tests.helpers.gateway_programs:items"


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("timeout", 0.0, "0.01 to 86,400"),
        ("timeout", -5.0, "0.01 to 86,400"),
        ("horizon", 0, "1 to 100,000"),
        ("failure_reward", 1e20, "-1,000,000,000"),
        ("failure_reward", float("nan"), "-1,000,000,000"),
        ("workers", -1, "0 to 1,024"),
        ("workers", 100_000, "0 to 1,024"),
        ("max_bytes", 0, "1 to "),
        ("port", 70_000, "0 to 65,535"),
        ("port", -1, "0 to 65,535"),
    ],
)
def test_a_number_out_of_bounds_is_one_line(name: str, value: Any, bounds: str) -> None:
    with pytest.raises(ConfigError, match=f"task.{name}: must lie in {bounds}"):
        Gateway(("one",), ITEMS, command=("true",), **{name: value})


@pytest.mark.parametrize("agents", [(), ("team", "one"), ("one", "ONE"), ("one", "one"), ("end",)])
def test_agents_that_a_program_cannot_tell_apart_are_one_line(agents: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"task\.agents: "):
        Gateway(agents, ITEMS)


def test_a_failure_is_recorded_without_secrets() -> None:
    live = ProgramRun(0, ("one",), "owl")
    live.end(failure="AuthenticationError: incorrect API key provided: gsk_SWORDFISHSWORDFISH12")
    assert live.failure == "AuthenticationError: incorrect API key provided: ***masked***"
