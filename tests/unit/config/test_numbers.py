"""Texts and truth values where a setting is a number, and numbers beyond all bounds."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import register

from colearn.config import load_config
from colearn.config.build import build_algorithm, build_task
from colearn.errors import ConfigError


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    return {
        "task": {"name": "notes"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": "x"}},
    }


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("run.seed=true", "run.seed: must be an integer, got True"),
        ("run.seed=-1", "run.seed: input should be greater than or equal to 0, got -1"),
        ("compare.seeds=[0, -1]", "compare.seeds.1: input should be greater than or equal to 0"),
        ("compare.seeds=[0, true]", "compare.seeds: must be an integer, got True"),
        ("train.episodes='2'", "train.episodes: must be an integer, got '2'"),
        ("models.*.lora.rank=100000000", "models.*.lora.rank: input should be less than or equal"),
        ("models.*.learning_rate=1e300", "models.*.learning_rate: input should be less than or eq"),
        ("models.*.learning_rate=true", "models.*.learning_rate: must be a number, got True"),
        ("agents.*.sampling.max_tokens=10000000000", "agents.*.sampling.max_tokens: input should"),
        ("agents.*.sampling.top_k=1000000000000000000000", "agents.*.sampling.top_k: must lie in"),
        ("train.environment_steps=1e30", "train.environment_steps: "),
    ],
)
def test_a_number_of_the_config_is_checked(data: dict[str, Any], pair: str, message: str) -> None:
    data["agents"] = {"*": {}}
    with pytest.raises(ConfigError) as caught:
        load_config(data, [pair])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("pair", "value"), [("models.*.learning_rate=5e-6", 5e-6), ("models.*.learning_rate=1", 1.0)]
)
def test_exponents_and_whole_numbers_stay_numbers(
    data: dict[str, Any], pair: str, value: float
) -> None:
    assert load_config(data, [pair]).models["*"].learning_rate == value
    written = data | {"models": {"*": {"path": "x", "learning_rate": "5e-6"}}}
    assert load_config(written).models["*"].learning_rate == 5e-6  # as YAML 1.1 reads 5e-6


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2", "task.horizon: must be an integer, got '2'"),
        (True, "task.horizon: must be an integer, got True"),
        (10**11, "task.horizon: must lie in 1 to 100,000, got 100000000000"),
    ],
)
def test_a_tasks_horizon_is_a_number_that_ends(
    data: dict[str, Any], value: Any, message: str
) -> None:
    data["task"]["horizon"] = value
    with pytest.raises(ConfigError) as caught:
        build_task(load_config(data))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("algorithm.rollout.k='3'", "algorithm.rollout.k: must be an integer, got '3'"),
        ("algorithm.rollout.k=1000000", "algorithm.rollout.k: must lie in 1 to 1024, got 1000000"),
        ("algorithm.discount=true", "algorithm.discount: must be a number, got True"),
    ],
)
def test_a_number_of_an_algorithm_is_checked(data: dict[str, Any], pair: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_algorithm(load_config(data, [pair]))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (
            "evaluation.headline.metirc=solved",
            "evaluation.headline.metirc: unknown key; did you mean 'metric'?",
        ),
        (
            "agents.*.sampling.anneal.strat=1.0",
            "agents.*.sampling.anneal.strat: unknown key; did you mean 'start'?",
        ),
        (
            "agents.*.sampling.anneal.end=0.5",
            "agents.*.sampling.anneal.start: missing; add it to the config",
        ),
        (
            "algorithm.rollout={name: fork_on, aegnt: ada}",
            "algorithm.rollout.aegnt: unknown setting; did you mean 'agent'?",
        ),
        (
            "algorithm.rollout={name: fork_on}",
            "algorithm.rollout.agent: missing; it has no default",
        ),
    ],
)
def test_a_misspelt_key_is_told_rather_than_that_it_is_missing(
    data: dict[str, Any], pair: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_algorithm(load_config(data, [pair]))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("algorithm", "pair", "message"),
    [
        (
            "collm_cc",
            "algorithm.rollout.k=3",
            "algorithm.rollout.k: unknown setting; 'chain' has no settings; ",
        ),
        (
            "collm_cc",
            "credit.name=mixed",
            "credit: unknown key; did you mean 'algorithm.credit.name'?",
        ),
        ("collm_cc", "episodes=3", "episodes: unknown key; "),
        (
            "collm_cc",
            "environment_steps=3",
            "environment_steps: unknown key; did you mean 'train.env",
        ),
    ],
)
def test_an_unknown_setting_names_where_it_belongs(
    data: dict[str, Any], algorithm: str, pair: str, message: str
) -> None:
    data["algorithm"]["name"] = algorithm
    with pytest.raises(ConfigError) as caught:
        build_algorithm(load_config(data, [pair]))
    assert str(caught.value).startswith(message)
    if "rollout.k" in pair:
        assert "tree" in str(caught.value) and str(caught.value).endswith("have it")
