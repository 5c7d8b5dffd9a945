"""Memory of each worker of a Ray cluster, by hand, and what a dry run says of it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from estimated import *  # noqa: F403 - fixtures
from rich.console import Console

from colearn.estimate import Estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.phases import FIXED_BYTES
from colearn.estimate.table import estimate_tables

ADAPTERS = tuple(f"{of}.lora={{rank: 2, targets: [q_proj]}}" for of in ("models.*", "critic"))
TRAINED = 32_544
"""Parameters of the tiny model, counted in test_estimate.py."""
TOKENIZER = 10_000_000
"""Bytes that this process may grow by when it reads the tiny model's tokenizer."""


@pytest.fixture
def on_ray(estimated: Any) -> Any:
    def run(*overrides: str, machine: Machine | None = None) -> Estimate:
        section = {"device": "auto" if machine else "cpu", "host": {"name": "ray"}}
        one: Estimate = estimated(*overrides, machine=machine, run=section)
        return one

    return run


def shown(one: Estimate) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(estimate_tables(one))
    return console.export_text()


def test_a_worker_has_the_phases_and_bytes_of_its_own_models(on_ray: Any) -> None:
    phases = on_ray().phases
    assert list(phases) == ["actor-ada: cpu", "actor-ben: cpu", "critic-team: cpu"]
    actor = phases["actor-ada: cpu"]
    assert set(phases["critic-team: cpu"]) == {"critic update", "optimizer step", "checkpoint"}
    assert set(actor) == {"evaluation", "rollout", "actor update", "optimizer step", "checkpoint"}
    # weights, gradients and two moments of one actor; a checkpoint clones weights or moments
    assert actor["optimizer step"] - FIXED_BYTES < 17 * TRAINED + TOKENIZER
    assert actor["checkpoint"] - actor["optimizer step"] == 4 * TRAINED


def test_models_that_share_a_base_are_one_worker(on_ray: Any) -> None:
    one = on_ray(*ADAPTERS)
    assert [worker.name for worker in one.workers] == ["actor-ada, actor-ben, critic-team"]
    assert [*one.phases] == ["actor-ada, actor-ben, critic-team: cpu"]


def test_a_dry_run_shows_the_peak_of_each_worker(on_ray: Any) -> None:
    text = shown(on_ray("run.host.gpus=0.5"))
    assert "critic-team: cpu" in text and "actor-ada: cpu" in text


def test_workers_are_compared_with_their_share_of_the_gpus(on_ray: Any) -> None:
    small = Machine(count=2, memory=1_000_000)
    text = shown(on_ray("run.host.gpus=1", machine=small))
    assert "3 workers reserve 3 GPUs, and --devices has 2; lower run.host.gpus" in text
    one = on_ray("run.host.gpus=0.5", machine=small)
    assert 500_000 < one.peak("actor-ada: cuda:0") < 1_000_000
    assert "does not fit: actor-ada: cuda:0 needs" in shown(one)
    large = on_ray("run.host.gpus=0.5", machine=read_machine("2x80GB"))
    assert "fits into the memory of --devices" in shown(large)
    assert not one.placement, "the cluster places the models"


def test_a_run_in_one_process_has_no_workers(on_ray: Any) -> None:
    assert not on_ray("run.host.name=local").workers
