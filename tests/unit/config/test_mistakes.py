"""A mistake in a setting is one line that names the setting and what it has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import register

from colearn.config import Named, build_part, load_config, resolve
from colearn.config.build import build_task
from colearn.contract import GeneratorKind
from colearn.errors import ConfigError

CONFIG: dict[str, Any] = {
    "task": {"name": "notes"},
    "algorithm": {"name": "magrpo"},
    "models": {"*": {"path": "x"}},
    "agents": {"*": {}},
}


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, notes="tiny:Notes")


def refused(sections: dict[str, Any], *pairs: str) -> str:
    """The line about a config, when it is loaded or when it is resolved."""
    with pytest.raises(ConfigError) as caught:
        resolve(load_config(CONFIG | sections, pairs))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        ("run.seed=true", "run.seed: must be an integer, got True"),
        ("run.seed=-1", "run.seed: input should be greater than or equal to 0, got -1"),
        ("compare.seeds=[0, -1]", "compare.seeds.1: input should be greater than or equal to 0"),
        ("compare.seeds=[0, true]", "compare.seeds: must be an integer, got True"),
        ("train.episodes='2'", "train.episodes: must be an integer, got '2'"),
        ("train.environment_steps=1e30", "train.environment_steps: "),
        (f"train.epochs={'x' * 3000}", f"train.epochs: must be an integer, got '{'x' * 99} ..."),
        ("models.*.lora.rank=100000000", "models.*.lora.rank: input should be less than or equal"),
        ("models.*.learning_rate=1e300", "models.*.learning_rate: input should be less than or eq"),
        ("models.*.learning_rate=true", "models.*.learning_rate: must be a number, got True"),
        ("models.*.learning_rate=.inf", "models.*.learning_rate: input should be a finite number"),
        ("models.*.betas=[0.9, 1.0]", "models.*.betas.1: input should be less than 1"),
        ("models.*.betas=0.9", "models.*.betas: must be a list, got 0.9"),
        ("models.*.betas=[0.9]", "models.*.betas: must have more entries, got [0.9]"),
        ("models.*.betas=[]", "models.*.betas: must have more entries, got []"),
        (
            "models.*.betas=[0.9, 0.99, 0.5]",
            "models.*.betas: tuple should have at most 2 items after validation, not 3, got [0.9, ",
        ),
        ("agents.*.sampling.max_tokens=10000000000", "agents.*.sampling.max_tokens: input should"),
        ("agents.*.sampling.top_k=1000000000000000000000", "agents.*.sampling.top_k: must lie in"),
        ("task.horizon='2'", "task.horizon: must be an integer, got '2'"),
        ("task.horizon=true", "task.horizon: must be an integer, got True"),
        ("task.horizon=100000000000", "task.horizon: must lie in 1 to 100,000, got 100000000000"),
        ("algorithm.rollout.k='3'", "algorithm.rollout.k: must be an integer, got '3'"),
        ("algorithm.rollout.k=1000000", "algorithm.rollout.k: must lie in 1 to 1024, got 1000000"),
        ("algorithm.discount=true", "algorithm.discount: must be a number, got True"),
        ("algorithm.discount=[0.5, 1]", "algorithm.discount: input should be a valid number, got"),
        ("algorithm.loss.kl=.nan", "algorithm.loss.kl: input should be a finite number"),
        ("algorithm.loss=3", "algorithm.loss.name: got 3; give a section such as {name: ...}"),
        ("train=3", "train: must be a section with keys of its own, got 3"),
    ],
)
def test_a_wrong_value_is_told_with_what_it_has_to_be(pair: str, line: str) -> None:
    assert refused({}, pair).startswith(line)


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        ("trian.epochs=3", "trian: unknown key; did you mean 'train'?"),
        ("compare.seed=1", "compare.seed: unknown key; did you mean 'seeds'?"),
        ("models.*.path_=1", "models.*.path_: unknown key; did you mean 'path'?"),
        ("run.seeds=1", "run.seeds: unknown key; did you mean 'seed'?"),
        (
            "agents.*.sampling.max_token=3",
            "agents.*.sampling.max_token: unknown key; did you mean 'max_tokens'?",
        ),
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
        ("algorithm.discont=0.9", "algorithm.discont: unknown setting; did you mean 'discount'?"),
        (
            "algorithm.rollout={name: fork_on, aegnt: ada}",
            "algorithm.rollout.aegnt: unknown setting; did you mean 'agent'?",
        ),
        (
            "algorithm.rollout={name: fork_on}",
            "algorithm.rollout.agent: missing; it has no default",
        ),
        ("credit.name=mixed", "credit: unknown key; did you mean 'algorithm.credit.name'?"),
        ("episodes=3", "episodes: unknown key; did you mean 'train.episodes'"),
        (
            "environment_steps=3",
            "environment_steps: unknown key; did you mean 'train.environment_steps'?",
        ),
    ],
)
def test_a_misspelt_key_is_told_with_the_one_that_is_meant(pair: str, line: str) -> None:
    """Rather than that the setting is missing; and with the section that has it."""
    assert refused({}, pair).startswith(line)


def test_a_part_without_settings_is_told_with_the_parts_that_have_them() -> None:
    critic = {"algorithm": {"name": "collm_cc"}, "critic": {"path": "x"}}
    line = refused(critic, "algorithm.rollout.k=3")
    assert line.startswith("algorithm.rollout.k: unknown setting; 'chain' has no settings; ")
    assert "tree" in line and line.endswith("have it")


@pytest.mark.parametrize(
    ("pair", "value"), [("models.*.learning_rate=5e-6", 5e-6), ("models.*.learning_rate=1", 1.0)]
)
def test_exponents_and_whole_numbers_stay_numbers(pair: str, value: float) -> None:
    assert load_config(CONFIG, [pair]).models["*"].learning_rate == value
    written = CONFIG | {"models": {"*": {"path": "x", "learning_rate": "5e-6"}}}
    assert load_config(written).models["*"].learning_rate == 5e-6  # as YAML 1.1 reads 5e-6


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
def test_a_setting_with_values_of_several_kinds_is_named(
    settings: dict[str, Any], line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_part(GeneratorKind, Named(name="vllm_server", **settings), "run.generator")
    assert str(caught.value) == f"run.generator.{line}"


GATEWAY = {"name": "gateway", "agents": ["ada"], "items": "x"}
JUDGE = {"name": "judge", "url": "x", "prices": 0.1}


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ({**GATEWAY, "command": ["a", 7]}, "command.1: input should be a valid string, got 7"),
        (
            {**GATEWAY, "words": {"ada": ["a", [7]]}},
            "words.ada.1: input should be a valid string, got [7]",
        ),
        (
            {**GATEWAY, "failure_reward": float("-inf")},
            "failure_reward: must hold finite numbers, got -inf",
        ),
        ({**GATEWAY, "timeout": "1e400"}, "timeout: must hold finite numbers, got inf"),
        ({**GATEWAY, "words": ["a"]}, "words: must be a section with keys of its own, got ['a']"),
        (
            {"name": "dataset", "path": "x", "reward": JUDGE},
            "reward.prices: must be a list, got 0.1",
        ),
        ({"name": "tldr", "data": "generated", "words": 4}, "words: must be a list, got 4"),
    ],
)
def test_a_setting_of_a_task_is_named(section: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_task(load_config({**CONFIG, "task": section}))
    assert str(caught.value) == f"task.{line}"


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"task": {"name": "notes", "texts": ["a", "\ud800"]}}, "task.texts.1"),
        ({"agents": {"a\udfff": {}}}, r"agents.'a\udfff'"),
        ({"critic": {"path": "x\udfff"}}, "critic.path"),
    ],
)
def test_half_of_a_surrogate_pair_in_a_mapping_is_named(sections: dict[str, Any], key: str) -> None:
    told = f"{key}: holds half of a surrogate pair, which is no text; correct it"
    assert refused(sections) == told


@pytest.mark.parametrize("written", ["null ", 3, ["seed"]])
@pytest.mark.parametrize("section", ["run", "models", "critic", "cast"])
def test_a_section_of_a_file_that_is_no_section_is_one_line_with_its_name(
    section: str, written: object, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**CONFIG, section: written}))
    with pytest.raises(ConfigError, match=rf"^{section}[.:]") as raised:
        load_config(path)
    assert "\n" not in str(raised.value)
