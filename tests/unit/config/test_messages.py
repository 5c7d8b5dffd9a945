"""Errors of settings with values of several kinds name the setting, not a kind or a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import register

from colearn.config import Named, build_part, load_config
from colearn.config.build import build_algorithm, build_task
from colearn.contract import GeneratorKind
from colearn.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"url": 7}, "url: input should be a valid string or must be a list or must be a section "
                     "with keys of its own, got 7; write [7]"),
        ({"url": {"ada": 7}}, "url.ada: input should be a valid string or must be a list, got 7; "
                              "write [7]"),
        ({"url": ["a", 7]}, "url.1: input should be a valid string, got 7"),
        ({"max_rows": {"a": 1}}, "max_rows: input should be a valid integer"),
    ],
)  # fmt: skip
def test_a_setting_of_a_generator_is_named(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_part(GeneratorKind, Named(name="vllm_server", **settings), "run.generator")
    assert str(caught.value) == f"run.generator.{line}"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"command": ["a", 7]}, "command.1: input should be a valid string, got 7"),
        ({"words": {"ada": ["a", [7]]}}, "words.ada.1: input should be a valid string, got [7]"),
        ({"failure_reward": float("-inf")}, "failure_reward: must hold finite numbers, got -inf"),
        ({"timeout": "1e400"}, "timeout: must hold finite numbers, got inf"),
        ({"words": ["a"]}, "words: must be a section with keys of its own, got ['a']"),
    ],
)
def test_a_setting_of_a_task_is_named(settings: dict[str, Any], line: str) -> None:
    section = {"name": "gateway", "agents": ["ada"], "items": "x", **settings}
    config = load_config({"task": section, "models": {"*": {"path": "x"}}})
    with pytest.raises(ConfigError) as caught:
        build_task(config)
    assert str(caught.value) == f"task.{line}"


@pytest.mark.parametrize(
    ("betas", "line"),
    [
        (0.9, "must be a list, got 0.9"),
        ([0.9], "must have more entries, got [0.9]"),
        ([], "must have more entries, got []"),
        (
            [0.9, 0.99, 1e-8],
            "tuple should have at most 2 items after validation, not 3, got [0.9, 0.99, 1e-08]",
        ),
    ],
)
def test_a_list_of_a_fixed_length_is_asked_for_by_its_length(betas: Any, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"task": "notes", "models": {"*": {"path": "x", "betas": betas}}})
    assert str(caught.value) == f"models.*.betas: {line}"


@pytest.mark.parametrize(
    ("section", "line"),
    [
        (
            {
                "name": "dataset",
                "path": "x",
                "reward": {"name": "judge", "url": "x", "prices": 0.1},
            },
            "task.reward.prices: must be a list, got 0.1",
        ),
        ({"name": "tldr", "data": "generated", "words": 4}, "task.words: must be a list, got 4"),
    ],
)
def test_an_argument_that_is_a_list_is_asked_for_as_one(section: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_task(load_config({"task": section, "models": {"*": {"path": "x"}}}))
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("section", "key", "meant"),
    [
        ("compare", "seed", "seeds"),
        ("compare", "worker", "workers"),
        ("models.*", "path_", "path"),
        ("evaluation", "repeat", "repeats"),
        ("train", "epoch", "epochs"),
        ("run", "seeds", "seed"),
    ],
)
def test_a_letter_too_few_or_too_many_leads_to_the_setting_of_the_same_section(
    section: str, key: str, meant: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("quickstart", [f"{section}.{key}=1"])
    assert str(caught.value) == f"{section}.{key}: unknown key; did you mean '{meant}'?"


def test_a_setting_of_an_algorithm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, notes="tiny:Notes")
    section = {"name": "magrpo", "discount": [0.5, 1]}
    config = load_config(
        {"task": "notes", "algorithm": section, "models": {"*": {"path": "x"}}},
    )
    with pytest.raises(ConfigError) as caught:
        build_algorithm(config)
    assert str(caught.value) == "algorithm.discount: input should be a valid number, got [0.5, 1]"


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"task": {"name": "notes", "texts": ["a", "\ud800"]}}, "task.texts.1"),
        ({"agents": {"a\udfff": {}}}, r"agents.'a\udfff'"),
        ({"critic": {"path": "x\udfff"}}, "critic.path"),
    ],
)
def test_half_of_a_surrogate_pair_in_a_mapping_is_named(sections: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"task": "notes", "models": {"*": {"path": "x"}}, **sections})
    told = f"{key}: holds half of a surrogate pair, which is no text; correct it"
    assert str(caught.value) == told


@pytest.mark.parametrize("written", ["null ", 3, 0.5, True, ["seed"]])
@pytest.mark.parametrize("section", ["run", "train", "models", "critic", "evaluation", "cast"])
def test_a_section_of_a_file_that_is_no_section_is_one_line_with_its_name(
    section: str, written: object, tmp_path: Path
) -> None:
    data = {"task": "str_build", "algorithm": "magrpo", "models": {"*": {"path": "tiny"}}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**data, section: written}))
    with pytest.raises(ConfigError, match=rf"^{section}[.:]") as raised:
        load_config(path)
    assert "\n" not in str(raised.value)
