"""An engine of one file, by what every engine passes, and named from a config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from engine_cases import TOLERANCE, Setup
from fake_engine import Fake, FakeEngine, short_probes  # noqa: F401 - a fixture
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import load_config
from colearn.contract import GeneratorKind, WeightUpdate
from colearn.engines.checked_engine import ParityError


@pytest.fixture(scope="module")
def kind() -> GeneratorKind:
    return Fake()


def test_an_engine_that_drops_an_update_is_found(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(engine: FakeEngine, updates: Sequence[WeightUpdate]) -> None:
        assert updates

    learner = setup.learner()
    weight = next(iter(learner.parameters.values()))
    weight.data.mul_(1.5)
    monkeypatch.setattr(FakeEngine, "write", nothing)
    with pytest.raises(ParityError, match=r"fake's log-probabilities"):
        setup.generator.sync()
    monkeypatch.undo()
    setup.generator.sync()
    assert setup.generator.gap < TOLERANCE


def test_generators_take_turns_where_their_engines_do(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEngine, "place", "one at a time")
    assert setup.generator.place == "one at a time"


@pytest.mark.parametrize("lora", [False, True])
def test_a_config_names_it_and_trains_with_it(
    lora: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colearn.training.loop import Experiment

    register(monkeypatch, notes="tiny:Notes")
    folder = tmp_path / "model"
    qwen().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    model: dict[str, Any] = {"path": str(folder), "learning_rate": 1e-2}
    if lora:
        model["lora"] = {"rank": 4, "alpha": 16}
    config = load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"*": model},
            "agents": {"*": {"chat": "plain", "sampling": {"max_tokens": 3}}},
            "train": {"episodes": 1, "environment_steps": 1000},
            "evaluation": {"episodes": 1},
            "run": {"generator": {"name": "fake_engine:Fake", "max_length": 3000}, "device": "cpu"},
        }
    )
    experiment = Experiment(config, tmp_path / "run")
    for iteration in range(2):
        trees = experiment.trees()
        versions = {one.version for node in trees[0].nodes for one in node.actions.values()}
        assert versions == {iteration}
        metrics = experiment.step()
        gaps = [value for key, value in metrics.items() if key.endswith("/logprob_mismatch")]
        assert len(gaps) == len(experiment.team.run.config.models)
        assert max(gaps) < TOLERANCE
        names = ["generator"] if lora else ["generator/ada", "generator/ben"]
        parity = {key: value for key, value in metrics.items() if key.startswith("parity_gap/")}
        assert list(parity) == [f"parity_gap/{name}" for name in names]
        assert list(parity.values()) == [one.gap for one in experiment.team.engines]
