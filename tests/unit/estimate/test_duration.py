"""Seconds of an iteration, computed by hand from a device's published rates."""

from __future__ import annotations

from typing import Any

import pytest
from estimated import *  # noqa: F403 - fixtures

from colearn.contract import EngineNeeds
from colearn.engines.kinds import VLLM, Transformers, VLLMServer
from colearn.engines.vllm_options import OVERHEAD
from colearn.estimate.accelerators import ACCELERATORS, accelerator
from colearn.estimate.duration import KERNEL, PRODUCTS
from colearn.estimate.machine import known_devices, read_machine
from colearn.estimate.run_estimate import Estimate

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "sold", "half"),
    [
        ("A100", 40, 312),
        ("A100", 80, 312),
        ("H100-SXM", 80, 989.4),
        ("H200", 141, 989.4),
        ("L40S", 48, 362.05),
        ("RTX-4090", 24, 165.2),
        ("B200", 180, 2250),
    ],
)
def test_a_device_has_the_rate_of_its_data_sheet(name: str, sold: float, half: float) -> None:
    one = accelerator(name, sold)
    assert one is not None and one.half / 1e12 == pytest.approx(half)


def test_a_device_of_another_memory_is_not_known() -> None:
    assert accelerator("H100", 64) is None
    assert read_machine("2x24GB").card is None
    assert len(known_devices().split(", ")) == len(ACCELERATORS)


def test_an_engine_of_its_own_holds_weights_cache_and_what_a_prefill_needs() -> None:
    assert Transformers().needs(100, memory=80 * GIB) is None
    assert VLLM(cache_gib=2, max_rows=8).needs(100, memory=80 * GIB) == EngineNeeds(
        held=100 + 2 * GIB + OVERHEAD, cache=2 * GIB
    )
    assert VLLM().needs(100, memory=80 * GIB).cache == 8 * GIB
    assert VLLM().needs(100, memory=None).held == 100 + GIB
    elsewhere = VLLMServer(url="http://127.0.0.1:1").needs(100, memory=80 * GIB)
    assert (elsewhere.held, elsewhere.cache) == (0, 0)


TRAINED = {"algorithm": {"name": "magrpo"}, "critic": None}


def on_h100(estimated: Any, *changes: str) -> Estimate:
    made = estimated("run.device=auto", *changes, machine=read_machine("H100-80GB"), **TRAINED)
    assert isinstance(made, Estimate) and made.seconds is not None
    return made


def test_vllm_engines_are_in_the_memory_of_every_phase(estimated: Any) -> None:
    own = on_h100(estimated)
    engines = on_h100(estimated, "run.generator={name: vllm, cache_gib: 2}")
    trained = sum(network.trained for network in engines.networks)
    weights = 4 * trained  # float32
    before, after = own.phases["cuda:0"], engines.phases["cuda:0"]
    held = weights + 2 * (2 * GIB + OVERHEAD)  # an engine for each of two models
    assert after["actor update"] - before["actor update"] == held
    assert after["rollout"] == 12 * trained + held  # weights and two moments, and the engines
    assert engines.caches["cuda:0"] == 2 * 2 * GIB


def test_hours_are_iterations_and_evaluations(estimated: Any) -> None:
    # 2 episodes x (4 + 16) joint actions an iteration: 5 iterations, evaluated at 0, 2, 4 and 5
    one = on_h100(estimated, "train.environment_steps=200", "evaluation.every=2")
    assert one.seconds is not None and one.iterations == 5
    seconds = 5 * (one.seconds.rollout + one.seconds.update) + 4 * one.seconds.evaluation
    assert one.hours == pytest.approx(seconds / 3600)


def test_decoded_tokens_take_the_time_of_their_kernels(estimated: Any) -> None:
    one = on_h100(estimated)
    layers, turns, tokens, agents = 2, 2, 4, 2
    # 1,017 / 28 kernels a layer; the products of a prompt are nothing beside them
    seconds = agents * turns * tokens * layers * 1017 / 28 * KERNEL
    assert one.seconds is not None
    assert one.seconds.rollout == pytest.approx(seconds, rel=1e-2)


def test_an_update_takes_the_time_of_its_products(estimated: Any) -> None:
    one = on_h100(estimated, "train.token_budget=100000")
    assert one.seconds is not None and one.steps is not None
    tokens = sum(total.tokens for total in one.steps.updates.values())
    # forward and backward are three passes of 2 FLOPs per token and weight; float32 at half rate
    body = 3 * 2 * tokens * BODY / (PRODUCTS * 989.4e12 / 2)
    assert body < one.seconds.update < 1.5 * body, "attention and the head come on top"


BODY = 20_544
"""Weights of the tiny model outside of its embeddings and head: two layers of four attention
projections, three of the MLP and two norms, and the last norm."""
