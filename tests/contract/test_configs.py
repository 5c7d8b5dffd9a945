"""Every shipped config is one that `colearn compare` takes, without loading a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from colearn import registry
from colearn.comparison.plan import make_plan
from colearn.config import dump_config, load_config, shipped_configs

ROOT = Path(__file__).parents[2]
CONFIGS = shipped_configs()
DEEPSPEED = sorted((ROOT / "configs").rglob("*.json"))


def test_the_quickstart_is_shipped() -> None:
    assert "quickstart" in CONFIGS


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_opens_with_a_line_that_says_what_it_is(name: str) -> None:
    first = CONFIGS[name].read_text().splitlines()[0]
    assert first.startswith("# ") and len(first) > 20


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_names_a_known_task(name: str) -> None:
    assert load_config(name).task.name in registry.names("tasks")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_builds_its_plan(name: str) -> None:
    plan = make_plan(load_config(name))
    assert {run.config.algorithm.name for run in plan.runs} <= set(registry.names("algorithms"))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_comes_back_from_its_dump(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    path = tmp_path / "dumped.yaml"
    path.write_text(dump_config(config))
    assert load_config(path) == config


@pytest.mark.parametrize("path", DEEPSPEED, ids=lambda path: path.name)
def test_a_deepspeed_config_is_a_json_object(path: Path) -> None:
    assert isinstance(json.loads(path.read_text()), dict)
