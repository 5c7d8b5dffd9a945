"""DeepSpeed against the local learner: the same rows must give the same weights."""

from __future__ import annotations

import functools
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from learner_cases import CASES
from learner_launch import apart, launch, result_of, same_log
from learner_parts import maker

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None, reason="needs the deepspeed extra"
    ),
]

STAGES = ("zero0", "zero1", "zero2", "small", "sharded", "offloaded")
"""`small`: ZeRO-2 with buckets smaller than the largest weights; `sharded`: ZeRO-3 that divides
every weight, `offloaded` with parameters and optimiser in the CPU's memory."""
TRAINED = ("policy", "value", "mixed", "team", "accumulated")


@functools.cache
def alone(case: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEARNER_FOLDER", folder)
        return CASES[case](maker("local"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "small.json"
    buckets = {"reduce_bucket_size": 2000, "allgather_bucket_size": 2000}
    path.write_text(json.dumps({"zero_optimization": {"stage": 2, **buckets}}))
    return path


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Paths of two configs at stage 3, without the threshold under which weights stay whole."""
    folder = tmp_path_factory.mktemp("three")
    cpu = {"device": "cpu"}
    more = {"sharded": {}, "offloaded": {"offload_optimizer": cpu, "offload_param": cpu}}
    for name, extra in more.items():
        zero = {"stage": 3, "stage3_param_persistence_threshold": 0, **extra}
        (folder / f"{name}.json").write_text(json.dumps({"zero_optimization": zero}))
    return ",".join(str(folder / f"{name}.json") for name in more)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, small: Path, three: str) -> Path:
    """Results of two processes, for every stage and case."""
    out = tmp_path_factory.mktemp("two")
    cases = (*TRAINED, "shared", "bad_loss", "bad_gradient", "unstepped", "adapters")
    launch(2, out, f"zero0,zero1,zero2,{small},{three}", *cases)
    return out


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("one")
    launch(1, out, "zero0,zero2", "policy", "team", "resumed", "broken")
    return out


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("case", TRAINED)
@pytest.mark.parametrize("stage", STAGES)
def test_two_processes_train_as_the_local_learner_does_alone(
    two: Path, stage: str, case: str, rank: int
) -> None:
    result = result_of(two, stage, case, rank)
    assert apart(result, alone(case)) < 1e-5
    assert same_log(result, alone(case), 1e-5)


@pytest.mark.parametrize("case", ("policy", "team"))
@pytest.mark.parametrize("stage", ("zero0", "zero2"))
def test_one_process_needs_no_launcher(one: Path, stage: str, case: str) -> None:
    assert apart(result_of(one, stage, case), alone(case)) < 1e-5


def test_one_process_shards_alone(tmp_path: Path, three: str) -> None:
    launch(1, tmp_path, three, "policy", "team")
    for stage in ("sharded", "offloaded"):
        for case in ("policy", "team"):
            assert apart(result_of(tmp_path, stage, case), alone(case)) < 1e-5


def test_clipping_is_at_work_in_what_is_compared() -> None:
    assert all(line["grad_norm"] > 2.0 for line in alone("policy")["log"])
    assert all(line["grad_norm"] > 2.0 for line in alone("value")["log"])


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("stage", STAGES)
def test_every_process_evaluates_everything(two: Path, stage: str, rank: int) -> None:
    pairs = zip(
        result_of(two, stage, "policy", rank)["logprobs"], alone("policy")["logprobs"], strict=True
    )
    assert max((left - right).abs().max().item() for left, right in pairs) < 1e-4


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("stage", STAGES)
def test_what_processes_collect_is_shared(two: Path, stage: str, rank: int) -> None:
    mine, whole = result_of(two, stage, "shared", rank)["values"], alone("shared")["values"]
    assert mine.keys() == whole.keys()
    assert all(mine[key] == pytest.approx(whole[key], abs=1e-5) for key in whole)


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("stage", STAGES)
def test_a_loss_that_is_not_finite_stops_every_process(two: Path, stage: str, rank: int) -> None:
    result = result_of(two, stage, "bad_loss", rank)
    assert result == alone("bad_loss")
    assert "update 1, micro-batch 3 (3 rows) is nan" in result["message"]


@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("stage", STAGES)
def test_a_gradient_that_is_not_finite_moves_nothing(two: Path, stage: str, rank: int) -> None:
    result = result_of(two, stage, "bad_gradient", rank)
    # ZeRO gives infinity for any norm that is not finite.
    assert result["message"].replace(" inf;", " nan;") == alone("bad_gradient")["message"]
    assert not result["moved"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_learner_saved_before_its_first_update_goes_on_alike(two: Path, stage: str) -> None:
    result = result_of(two, stage, "unstepped")
    assert apart(result["again"], result) == 0.0
    assert apart(result, alone("policy")) > 1e-5, "four updates, not ten"


@pytest.mark.parametrize("stage", STAGES)
def test_adapters_on_one_base_are_saved_and_loaded_each_by_its_learner(
    two: Path, stage: str
) -> None:
    result = result_of(two, stage, "adapters")
    assert apart(result["again"], result) == 0.0
    assert apart(result, alone("adapters")) < 1e-5


@pytest.mark.parametrize("stage", ("zero0", "zero2"))
def test_a_loaded_learner_goes_on_bit_for_bit(one: Path, stage: str) -> None:
    result = result_of(one, stage, "resumed")
    assert apart(result["again"], result) == 0.0
    assert result["again"]["log"] == result["log"]


def test_a_checkpoint_serves_any_number_of_processes_and_any_learner(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    launch(2, tmp_path, "zero2", "resumed", checkpoint=folder)
    launch(1, tmp_path, "local,zero0", "continued", checkpoint=folder)
    whole = result_of(tmp_path, "zero2", "resumed", 1)
    assert apart(whole["again"], whole) == 0.0
    for learner in ("local", "zero0"):
        assert apart(result_of(tmp_path, learner, "continued"), whole) < 1e-5
    launch(1, tmp_path, "local", "resumed", checkpoint=folder)
    launch(2, tmp_path, "zero0,zero2", "continued", checkpoint=folder)
    for stage in ("zero0", "zero2"):
        assert (
            apart(result_of(tmp_path, stage, "continued"), result_of(tmp_path, "local", "resumed"))
            < 1e-5
        )


def test_a_sharded_checkpoint_serves_the_local_learner_and_the_reverse(
    tmp_path: Path, three: str
) -> None:
    folder = tmp_path / "checkpoint"
    launch(2, tmp_path, three, "resumed", checkpoint=folder)
    for stage in ("sharded", "offloaded"):
        whole = result_of(tmp_path, stage, "resumed", 1)
        assert apart(whole["again"], whole) == 0.0
    launch(1, tmp_path, "local", "continued", checkpoint=folder)
    assert apart(result_of(tmp_path, "local", "continued"), whole) < 1e-5
    launch(1, tmp_path, "local", "resumed", checkpoint=folder)
    launch(2, tmp_path, three, "continued", checkpoint=folder)
    for stage in ("sharded", "offloaded"):
        continued = result_of(tmp_path, stage, "continued")
        assert apart(continued, result_of(tmp_path, "local", "resumed")) < 1e-5


@pytest.mark.parametrize("stage", ("zero0", "zero2"))
def test_a_checkpoint_cut_short_is_named(one: Path, stage: str) -> None:
    messages = result_of(one, stage, "broken")["messages"]
    assert [text.split(":")[0] for text in messages] == [
        "weights.safetensors",
        "optimizer.safetensors",
        "learner.json",
    ]
    assert all("resume from an earlier one" in text for text in messages)
