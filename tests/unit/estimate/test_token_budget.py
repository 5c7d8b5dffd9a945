"""The dry run cuts updates by the token budget of the devices that it describes."""

from __future__ import annotations

from typing import Any

from estimated import *  # noqa: F403 - the fixtures
from rich.console import Console

from colearn.estimate.machine import read_machine
from colearn.estimate.table import estimate_tables

LONG = ("train.episodes=40", "agents.*.sampling.max_tokens=60", "run.device=auto")


def micro_batches(one: Any) -> int:
    """Number of an iteration's micro-batches, and the table's line about them."""
    return sum(total.micro_batches for total in one.steps.updates.values())


def table_of(one: Any) -> str:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(estimate_tables(one))
    return printed.get()


def test_a_gpu_is_counted_with_larger_micro_batches(planned: Any) -> None:
    here, there = (planned(*LONG, machine=m) for m in (None, read_machine("H100-80GB")))
    assert micro_batches(there) < micro_batches(here)
    assert "padded tokens of a micro-batch │ 2,048" in table_of(here)
    assert "padded tokens of a micro-batch │ 8,192" in table_of(there)
