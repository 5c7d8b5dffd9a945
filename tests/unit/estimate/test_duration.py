"""Seconds of an iteration, computed by hand from a device's two measured constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from estimated import *  # noqa: F403 - fixtures
from typer.testing import CliRunner

from colearn.contract import EngineNeeds
from colearn.engines.kinds import VLLM, Transformers, VLLMServer
from colearn.engines.vllm_options import OVERHEAD
from colearn.entry.cli import app
from colearn.errors import CheckpointError
from colearn.estimate import Estimate
from colearn.estimate.ledger import rehearsal
from colearn.estimate.machine import read_machine
from colearn.estimate.speed import Speed, device_name, keep_speed, known_speeds
from colearn.estimate.table import time_line

GIB = 2**30
CPU = torch.device("cpu")
TRAINED = {"algorithm": {"name": "magrpo"}, "critic": None}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    return tmp_path


def speed(*, products: float = 1e30, launch: float = 0.0) -> Speed:
    return Speed(products={"float32": products, "bfloat16": 2 * products}, launch=launch)


def test_a_rehearsal_counts_products_and_operators() -> None:
    with rehearsal() as ledger:
        rows = torch.ones(7, 3)
        weight = torch.ones(5, 3, requires_grad=True)
        ledger.begin()
        (rows @ weight.T).sum().backward()
    # 2 x 7 x 3 x 5 FLOPs forward, and as many for the gradient of the weights
    assert ledger.cost.products == 2 * 210
    # product, sum, gradient of the sum (ones), product; transposing and expanding are views
    assert ledger.cost.launches == 4


def test_without_a_measurement_no_time_is_known(planned: Any) -> None:
    one = planned(**TRAINED)
    assert (one.seconds, one.hours) == (None, None)
    assert time_line(one) == (
        "no time is known: run colearn measure (a CPU is not measured in float16)"
    )


def test_a_measured_device_tells_the_time(estimated: Any) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    one = estimated(**TRAINED)
    assert one.seconds is not None
    assert time_line(one).startswith("estimate from colearn measure: an iteration takes ")


def test_the_time_on_a_described_machine_is_not_known(planned: Any) -> None:
    keep_speed(CPU, speed(launch=1.0))
    one = planned(machine=read_machine("H100-80GB"), **TRAINED)
    assert (one.seconds, time_line(one)) == (
        None,
        "no time is known: colearn measure measures this machine, not --devices",
    )


@pytest.mark.parametrize(
    "damaged",
    [
        '{"launch": "fast"}',
        '{"products": {"float32": 0}, "launch": 1}',
        '{"products": {"float32": -1e12}, "launch": 1}',
        '{"products": {"float32": NaN}, "launch": 1}',
        '{"products": {"float32": 1e12}, "launch": -1}',
        '{"products": {"float32": 1e12}, "launch": Infinity}',
        f'{{"products": {{"float32": 1{"0" * 400}}}, "launch": 1}}',
        '{"products": [], "launch": 1}',
    ],
)
def test_a_damaged_file_of_speeds_is_an_error(damaged: str, cache: Path) -> None:
    (cache / "speeds.json").write_text(f'{{"devices": {{"cpu": {damaged}}}}}')
    with pytest.raises(CheckpointError, match=r"speeds\.json: .*; delete it"):
        known_speeds()


def test_a_damaged_file_is_told_before_the_measurement(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "speeds.json").write_text("{}")
    monkeypatch.setattr("colearn.estimate.measure.measure", lambda device: pytest.fail("measured"))
    run = CliRunner().invoke(app, ["measure", "--device", "cpu"])
    assert isinstance(run.exception, CheckpointError)


def test_without_the_rate_of_a_models_type_no_time_is_known(planned: Any, model: str) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    half = {"path": model, "dtype": "float16", "trained": False}
    models = {"*": {"path": model}, "ada": half}
    one = planned(models=models, **TRAINED)
    assert one.seconds is None
    assert time_line(one).startswith("no time is known: ")


def test_the_command_keeps_what_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.estimate.measure.measure", lambda device: speed(launch=2e-6))
    run = CliRunner().invoke(app, ["measure", "--device", "cpu"])
    assert run.exit_code == 0 and "2.0 microseconds a launch" in run.output
    assert known_speeds().devices == {device_name(CPU): speed(launch=2e-6)}


def test_decoded_tokens_take_the_time_of_their_launches(estimated: Any) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    one = estimated("agents.*.sampling.max_tokens=24", **TRAINED)
    engines = one.place.speaking["rollout"]
    assert len(engines) == 2, "each agent has its own model"
    turns, tokens = 2, 24
    launches = sum(
        turns * (engine.first.prefill.launches + tokens * engine.last.step.launches)
        for engine in engines
    )
    assert one.seconds.rollout == pytest.approx(1e-3 * launches)


def test_an_update_takes_the_time_of_its_products(estimated: Any) -> None:
    keep_speed(CPU, speed(products=1e9))
    one = estimated("train.token_budget=100000", **TRAINED)
    tokens = sum(total.tokens for total in one.steps.updates.values())
    # forward and backward are three passes of 2 FLOPs per token and weight; the last of the two
    # layers runs only at the positions that are read, and the head comes on top
    body = 3 * 2 * tokens * BODY / 1e9
    # two products of 2 FLOPs for each pair of positions, channel and layer, and five backward
    width = max(len(row.tokens) for _, work in one.place.updates.values() for row in work.largest)
    attention = 7 * 2 * tokens * width * 32 * 2 / 1e9
    assert body / 2 + attention / 2 < one.seconds.update < 3 / 2 * body + attention


BODY = 20_544
"""Weights of the tiny model outside of its embeddings and head: two layers of four attention
projections, three of the MLP and two norms, and the last norm."""


def test_epochs_multiply_the_time_of_an_update(estimated: Any) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    once, thrice = (
        estimated(f"train.epochs={epochs}", "algorithm.loss.ratio=token", **TRAINED)
        for epochs in (1, 3)
    )
    passes = sum(update.cost.launches for update, _ in once.place.updates.values())
    # a micro-batch for each of two agents; old log-probabilities cost a third of a pass, once,
    # where there are several steps
    assert once.seconds.update == pytest.approx(1e-3 * passes)
    assert thrice.seconds.update == pytest.approx(1e-3 * passes * (3 + 1 / 3))


def test_an_engine_of_its_own_holds_weights_cache_and_what_a_prefill_needs() -> None:
    assert Transformers().needs(100, memory=80 * GIB) is None
    assert VLLM(cache_gib=2, max_rows=8).needs(100, memory=80 * GIB) == EngineNeeds(
        held=100 + 2 * GIB + OVERHEAD, cache=2 * GIB
    )
    assert VLLM().needs(100, memory=80 * GIB).cache == 8 * GIB
    assert VLLM().needs(100, memory=None).held == 100 + GIB
    elsewhere = VLLMServer(url="http://127.0.0.1:1").needs(100, memory=80 * GIB)
    assert (elsewhere.held, elsewhere.cache) == (0, 0)


def on_h100(estimated: Any, *changes: str) -> Estimate:
    made = estimated("run.device=auto", *changes, machine=read_machine("H100-80GB"), **TRAINED)
    assert isinstance(made, Estimate)
    return made


def test_vllm_engines_are_in_the_memory_of_every_phase(planned: Any) -> None:
    own = on_h100(planned)
    engines = on_h100(planned, "run.generator={name: vllm, cache_gib: 2}")
    trained = sum(network.trained for network in engines.networks)
    weights = 4 * trained  # float32
    before, after = own.phases["cuda:0"], engines.phases["cuda:0"]
    held = weights + 2 * (2 * GIB + OVERHEAD)  # an engine for each of two models
    assert after["actor update"] - before["actor update"] == held
    assert after["rollout"] == 12 * trained + held  # weights and two moments, and the engines
    assert engines.caches["cuda:0"] == 2 * 2 * GIB


def test_a_copy_for_rollouts_has_the_types_of_the_weights(planned: Any) -> None:
    """Trained weights are in float32 where passes compute in bfloat16."""
    half = "models.*.dtype=bfloat16"
    copying = "run.generator={name: transformers, copy: true}"
    own, copied = on_h100(planned, half), on_h100(planned, half, copying)
    trained = sum(network.trained for network in copied.networks)
    before, after = own.phases["cuda:0"], copied.phases["cuda:0"]
    assert after["actor update"] - before["actor update"] == 4 * trained


def test_the_time_of_answers_from_vllm_is_not_known(planned: Any) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    one = planned("run.generator={name: vllm, cache_gib: 2}", **TRAINED)
    assert one.seconds is None
    assert time_line(one) == "no time is known: colearn measure does not measure this generator"


def test_hours_are_iterations_and_evaluations(estimated: Any) -> None:
    keep_speed(CPU, speed(launch=1e-3))
    # 2 episodes x (4 + 16) joint actions an iteration: 5 iterations, evaluated at 0, 2, 4 and 5
    one = estimated("train.environment_steps=200", "evaluation.every=2", **TRAINED)
    assert one.seconds is not None and one.iterations == 5
    seconds = 5 * (one.seconds.rollout + one.seconds.update) + 4 * one.seconds.evaluation
    assert one.hours == pytest.approx(seconds / 3600)
