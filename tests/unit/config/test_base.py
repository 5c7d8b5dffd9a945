"""`base`: one setting that names the pretrained models of a config, in every row of it."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest

from colearn.config import load_config, shipped_configs
from colearn.errors import ConfigError
from colearn.runs.comparison.plan import config_of


@lru_cache
def loaded(name, *overrides):
    return load_config(name, overrides)


ROWS = [
    (name, label)
    for name in shipped_configs()
    if name.startswith("paper/")
    for label in loaded(name).compare.algorithms or {loaded(name).algorithm.name: {}}
]


def paths(config):
    """Of every model and the critic."""
    models = {name: model.path for name, model in config.models.items()}
    return models | ({} if config.critic is None else {"critic": config.critic.path})


@pytest.mark.parametrize(("name", "label"), ROWS)
def test_every_row_of_a_papers_config_is_resized_by_base_alone(name, label):
    usual = config_of(loaded(name), label)
    other = config_of(loaded(name, "base=other/model"), label)
    assert paths(other) == dict.fromkeys(paths(usual), "other/model")
    plain = json.dumps(other.model_dump(mode="json"))
    assert [path for path in set(paths(usual).values()) if path in plain] == []


def test_the_rows_are_those_that_one_path_setting_did_not_reach():
    missed = {("paper/stronger_mas_math", "at_grpo_shared"), ("paper/search_loop", "mappo")}
    assert missed < set(ROWS)


def config(**sections):
    return load_config({"task": {"name": "notes"}, **sections})


def test_a_path_that_is_left_out_is_the_base_and_one_that_is_given_stays():
    resolved = config(base="big", models={"a": {}, "b": {"path": "small"}}, critic={"lora": None})
    assert paths(resolved) == {"a": "big", "b": "small", "critic": "big"}


def test_a_base_of_several_names_is_referred_to_by_name():
    base = {"coder": "c", "tester": "t"}
    models = {"a": {"path": "base.coder"}, "b": {"path": "base.tester"}}
    resolved = config(base=base, models=models, critic={"path": "base.coder"})
    assert paths(resolved) == {"a": "c", "b": "t", "critic": "c"}
    assert config(base=base, models=models).critic is None
    again = load_config(resolved.model_dump(mode="json"))
    assert again == resolved


def test_one_of_several_names_is_set_alone():
    data = {
        "task": {"name": "notes"},
        "base": {"coder": "c", "tester": "t"},
        "models": {"a": {"path": "base.coder"}, "b": {"path": "base.tester"}},
    }
    assert paths(load_config(data, ["base.tester=u"])) == {"a": "c", "b": "u"}


def test_a_value_head_on_the_actors_takes_no_base():
    assert config(base="m", models={"*": {}}, critic={"share": "actor"}).critic.path is None


@pytest.mark.parametrize(
    ("sections", "line"),
    [
        (
            {"base": {"coder": "c"}, "models": {"a": {"path": "base.codr"}}},
            "models.a.path: base has no 'codr'; did you mean 'coder'?",
        ),
        (
            {"base": {"coder": "c"}, "models": {"a": {}}},
            "models.a.path: missing; add it to the config",
        ),
        ({"base": 3, "models": {"a": {"path": "m"}}}, "base"),
    ],
)
def test_what_a_base_cannot_say_is_one_line(sections, line):
    with pytest.raises(ConfigError) as error:
        config(**sections)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)
