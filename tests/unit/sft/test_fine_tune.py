"""What a config says of a model reaches TRL's trainer; a stand-in takes the trainer's place."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import Config, load_config
from colearn.config.load import dump_config
from colearn.entry.cli.sft import sft
from colearn.errors import ConfigError, MissingExtra
from colearn.training.learners.sft import fine_tune, run


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each training."""
    made: list[dict[str, Any]] = []
    trl = SimpleNamespace(SFTConfig=lambda **given: made.append(given))
    datasets = SimpleNamespace(Dataset=SimpleNamespace(from_list=list))
    packages = {"trl": trl, "datasets": datasets}
    monkeypatch.setattr(run, "required", lambda module, extra: packages[module])
    monkeypatch.setattr(run, "_train", lambda trl, name, *given: given[4] / name)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    turn = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path = tmp_path / "dialogues.jsonl"
    path.write_text(json.dumps({"agent": "ada", "messages": turn}))
    return path


def config(monkeypatch: pytest.MonkeyPatch, path: str, **ada: Any) -> Config:
    register(monkeypatch, notes="tiny:Notes")
    return load_config(
        {
            "task": {"name": "notes", "horizon": 1, "items": 3},
            "algorithm": {"name": "magrpo"},
            "models": {"ada": {"path": path, **ada}, "ben": {"path": path}},
            "run": {"device": "cpu", "seed": 7},
        }
    )


@pytest.mark.parametrize(
    ("dtype", "half"),
    [
        ("float32", {"bf16": False, "fp16": False}),
        ("bfloat16", {"bf16": True, "fp16": False}),
        ("float16", {"bf16": False, "fp16": True}),
    ],
)
def test_a_model_is_taught_in_its_own_precision(
    dtype: str,
    half: dict[str, bool],
    arguments: list[dict[str, Any]],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only a model that the run does not train may be in float16."""
    trains = dtype != "float16"
    given = config(monkeypatch, save_model(tmp_path / "model"), dtype=dtype, trained=trains)
    fine_tune(given, data, tmp_path / "out", epochs=2.0, learning_rate=1e-3, batch=4)
    (made,) = arguments
    assert {name: made[name] for name in half} == half
    assert (made["num_train_epochs"], made["learning_rate"]) == (2.0, 1e-3)
    assert (made["per_device_train_batch_size"], made["seed"]) == (4, 7)
    assert made["max_length"] is None and made["use_cpu"]


def test_one_pass_at_a_rate_of_2e_5_in_steps_of_eight_dialogues_is_usual(
    arguments: list[dict[str, Any]], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "config.yaml"
    given.write_text(dump_config(config(monkeypatch, save_model(tmp_path / "model"))))
    sft(str(given), data, tmp_path / "out")
    (made,) = arguments
    assert (made["num_train_epochs"], made["learning_rate"]) == (1.0, 2e-5)
    assert made["per_device_train_batch_size"] == 8


def test_a_damaged_tokenizer_is_named_by_its_models_field(
    arguments: list[dict[str, Any]], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    given = config(monkeypatch, save_model(folder))
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigError, match=r"^models\.ada\.path"):
        fine_tune(given, data, tmp_path / "out", epochs=1.0, learning_rate=2e-5, batch=8)


@pytest.mark.parametrize("package", ["trl", "datasets"])
def test_without_its_packages_the_extra_is_named(
    package: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def required(module: str, extra: str) -> None:
        if module == package:
            raise MissingExtra(module, extra)

    monkeypatch.setattr(run, "required", required)
    given = config(monkeypatch, save_model(tmp_path / "model"))
    with pytest.raises(MissingExtra, match=r"colearn-llm\[sft\]"):
        fine_tune(given, data, tmp_path / "out", epochs=1.0, learning_rate=2e-5, batch=8)
