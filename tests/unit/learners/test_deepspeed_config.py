"""The checks of a DeepSpeed JSON: one line that names the key and the remedy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from colearn.config import OptimizerSettings
from colearn.contract.rows import ActionTokens, Mark, Piece, Row
from colearn.errors import ConfigError, MissingExtra
from colearn.training.learners.batch import rounds
from colearn.training.learners.deepspeed_config import engine_config
from colearn.training.learners.deepspeed_engine import start_engine

SETTINGS = OptimizerSettings(learning_rate=2e-4, weight_decay=0.1, max_grad_norm=0.5)


def written(folder: Path, config: Any) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(("name", "stage"), (("zero0", 0), ("zero2", 2)))
def test_shipped_names_are_completed_from_the_settings(name: str, stage: int) -> None:
    config = engine_config(name, SETTINGS)
    assert config["zero_optimization"]["stage"] == stage
    assert config["gradient_allreduce_op"] == "sum"
    assert config["gradient_clipping"] == (0.5 if stage else 0.0)
    assert config["optimizer"]["params"] == {
        "lr": 2e-4,
        "betas": [0.9, 0.999],
        "weight_decay": 0.1,
        "torch_adam": True,
    }


@pytest.mark.parametrize("size", (None, True, "5e7", [], 0, -1, float("nan"), 1e300))
def test_a_bucket_is_a_number_of_elements(tmp_path: Path, size: Any) -> None:
    config = {"zero_optimization": {"stage": 2, "reduce_bucket_size": size}}
    with pytest.raises(ConfigError, match=r"reduce_bucket_size must be a number of elements, 1"):
        engine_config(written(tmp_path, config), SETTINGS)


def test_a_bucket_may_be_written_as_a_float(tmp_path: Path) -> None:
    config = {"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}
    assert engine_config(written(tmp_path, config), SETTINGS)["zero_optimization"] == {
        **config["zero_optimization"]
    }


def test_brackets_without_end_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ConfigError, match=r"cannot read .*deep\.json \(is no JSON\)"):
        engine_config(str(path), SETTINGS)


def test_a_file_of_ones_own_is_passed_on(tmp_path: Path) -> None:
    given = {"zero_optimization": {"stage": 2, "overlap_comm": False}, "steps_per_print": 5}
    config = engine_config(written(tmp_path, given), SETTINGS)
    assert given.items() <= config.items()


@pytest.mark.parametrize(
    ("config", "words"),
    (
        ({"train_batch_size": 8}, ("train_batch_size", "train.minibatch", "remove it")),
        ({"gradient_accumulation_steps": 2}, ("gradient_accumulation_steps", "token_budget")),
        ({"optimizer": {"type": "Adam"}}, ("optimizer", "learning_rate")),
        ({"gradient_clipping": 1.0}, ("gradient_clipping", "max_grad_norm")),
        ({"scheduler": {}}, ("scheduler", "warmup_steps")),
        ({"bf16": {"enabled": True}}, ("bf16", "dtype")),
        ({"zero_optimisation": {"stage": 2}}, ("zero_optimisation", "'zero_optimization'?")),
        ({"zero_optimization": {"stage": 4}}, ("zero_optimization.stage", "got 4", "zero2")),
        ({"zero_optimization": {"stage": "2"}}, ("zero_optimization.stage", "0, 1, 2 or 3")),
        ({"zero_optimization": 2}, ("zero_optimization.stage", "0, 1, 2 or 3")),
        (
            {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}},
            ("zero_optimization.offload_optimizer", "needs stage 3", "remove offload_optimizer"),
        ),
        ([1], ("JSON object",)),
    ),
)
def test_a_key_that_is_not_the_users_is_named(
    tmp_path: Path, config: Any, words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        engine_config(written(tmp_path, config), SETTINGS)
    message = str(caught.value)
    assert message.startswith("run.learner.config: ") and "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("source", "words"), (("zero4", "did you mean 'zero"), ("no/such.json", "cannot read"))
)
def test_a_name_or_file_that_does_not_exist(source: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"run.learner.config: .*{words}"):
        engine_config(source, SETTINGS)


def test_json_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{"zero_optimization": {')
    with pytest.raises(ConfigError, match=r"run\.learner\.config: cannot read .*cut\.json"):
        engine_config(str(path), SETTINGS)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    config = engine_config("zero2", SETTINGS)
    with pytest.raises(MissingExtra, match=r"pip install 'colearn-llm\[deepspeed\]'"):
        start_engine("actor", nn.Linear(1, 1), torch.device("cpu"), config)


def test_the_micro_batches_of_a_round_are_of_one_kind() -> None:
    def row(*, acts: bool, valued: bool) -> Row:
        spans = (ActionTokens(1, 2, 3, 1),) if acts else ()
        return Row(
            tokens=(1, 2, 3),
            pieces=(Piece(0, 3, -1, 0, 0),),
            spans=spans,
            marks=(Mark(0, 1),) if valued else (),
        )

    kinds = [(True, True), (True, False), (True, True), (False, True), (True, True)]
    micros = [(n, [(n, row(acts=a, valued=v))]) for n, (a, v) in enumerate(kinds)]
    numbers = [[number for number, _ in turn] for turn in rounds(micros, 2, alike=True)]
    assert numbers == [[0, 2], [4], [1], [3]]
    # learners that do not talk to each other in a pass take them as they come
    numbers = [[number for number, _ in turn] for turn in rounds(micros, 2, alike=False)]
    assert numbers == [[0, 1], [2, 3], [4]]
