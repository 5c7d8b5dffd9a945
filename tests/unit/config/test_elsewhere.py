"""An unknown setting leads to the one that is meant: a similar name, or another section's key."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import colearn
from colearn.config import build_algorithm, load_config, load_suite
from colearn.engines.kinds import VLLMServer
from colearn.errors import ConfigError
from colearn.registry import names, task_class

CONFIG = {"task": {"name": "str_build"}, "models": {"*": {"path": "embedded"}}}
TABLE = (
    (Path(__file__).parents[3] / "docs/howto/data.md")
    .read_text()
    .partition("## From a TRL script")[2]
    .partition("\n## ")[0]
)
SECTIONS = "agents|algorithm|critic|evaluation|models|run|task|train"
TARGETS = sorted(set(re.findall(rf"`((?:{SECTIONS})\.[\w.*]+)`", TABLE)))

MEANT = {
    "temperature": "'agents.*.sampling.temperature'",
    "learning_rate": "'models.*.learning_rate' or 'critic.learning_rate'",
    "seed": "'run.seed'",
}
"""By a key in the wrong section, what the error says."""


def _refused(*given: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        load_config(*given)
    return str(refused.value)


@pytest.mark.parametrize("key", MEANT)
@pytest.mark.parametrize("section", ["", "train."])
def test_a_key_of_another_section_leads_there_in_yaml_and_with_set(key: str, section: str) -> None:
    nested = {"train": {key: 1}} if section else {key: 1}
    told = f"{section}{key}: unknown key; did you mean {MEANT[key]}?"
    assert _refused({**CONFIG, **nested}) == _refused(CONFIG, [f"{section}{key}=1"]) == told


@pytest.mark.parametrize(
    ("key", "told"),
    [("temperature", MEANT["temperature"]), ("loss", "'algorithm.loss'"), ("sed", "'seed'")],
)
def test_a_keyword_leads_to_the_setting(key: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        colearn.train("str_build", **{key: 1})  # type: ignore[arg-type]
    assert str(refused.value) == f"{key}: no such argument; did you mean {told}?"


def test_in_a_suite_the_setting_is_below_each() -> None:
    with pytest.raises(ConfigError, match=r"^temperature: .*'each\.agents\.\*\.sampling\.temper"):
        load_suite("mhgpo", ["temperature=0.1"])


def test_the_table_of_trl_s_names_is_read() -> None:
    assert {"algorithm.rollout.k", "train.episodes", "run.generator.url"} <= set(TARGETS)


@pytest.mark.parametrize("key", TARGETS)
def test_every_setting_that_the_table_of_trl_s_names_has_exists(key: str) -> None:
    section, _, below = key.partition(".")
    if section == "task":
        assert any(below in inspect.signature(task_class(one)).parameters for one in names("tasks"))
    elif key.startswith("run.generator."):
        assert key.rpartition(".")[2] in {one.name for one in fields(VLLMServer)}
    else:
        with pytest.raises(ConfigError) as refused:  # no setting holds this
            config = CONFIG | {"algorithm": {"name": "magrpo"}}
            build_algorithm(load_config(config, {key: object()}))
        assert "unknown" not in str(refused.value)
