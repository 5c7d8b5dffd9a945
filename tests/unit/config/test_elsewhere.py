"""An unknown setting leads to the one that is meant: TRL's names, and keys of other sections."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import pytest

import colearn
from colearn.config import build_algorithm, load_config, load_suite
from colearn.config.elsewhere import as_argument
from colearn.config.trl_names import TRL_NAMES
from colearn.engines.kinds import VLLMServer
from colearn.errors import ConfigError
from colearn.registry import names, task_class

CONFIG = {"task": {"name": "str_build"}, "models": {"*": {"path": "embedded"}}}
TARGETS = sorted({key for one in TRL_NAMES.values() for key in one.keys})

MEANT = {
    "num_generations": "algorithm.rollout.k",
    "per_device_train_batch_size": "train.episodes",
    "num_train_epochs": "train.iterations and train.environment_steps",
    "max_completion_length": "agents.*.sampling.max_tokens",
    "max_prompt_length": "agents.*.overflow",
    "beta": "algorithm.loss.kl",
    "epsilon": "algorithm.loss.clip",
    "num_iterations": "train.epochs",
    "temperature": "'agents.*.sampling.temperature'",
    "top_p": "'agents.*.sampling.top_p'",
    "learning_rate": "'models.*.learning_rate' or 'critic.learning_rate'",
    "gradient_accumulation_steps": "train.minibatch and train.token_budget",
    "scale_rewards": "algorithm.advantage.normalize_std",
    "loss_type": "algorithm.loss.reduction",
    "use_vllm": "run.generator",
    "vllm_mode": "run.generator",
    "report_to": "run.trackers",
    "seed": "'run.seed'",
    "output_dir": "`--out`",
    "logging_steps": "every iteration is logged",
    "save_steps": "run.checkpoint_every",
    "push_to_hub": "colearn export RUN --push USER",
    "reward_weights": "task.weights",
    "steps_per_generation": "train.minibatch",
    "mask_truncated_completions": "cut answers are trained",
    "bf16": "models.*.dtype",
    "gradient_checkpointing": "models.*.checkpointing",
    "deepspeed": "run.learner",
}
"""By a name of TRL's, what the error says."""

ARGUMENTS = {
    "num_generations": 'algorithm={"name": ..., "rollout": {"k": ...}}',
    "max_completion_length": 'agents={"*": {"sampling": {"max_tokens": ...}}}',
    "learning_rate": 'models={"path": ..., "learning_rate": ...}',
    "output_dir": "out=...",
    "reward_funcs": "reward=...",
    "train_dataset": "data=...",
    "processing_class": "models=(model, tokenizer)",
    "loss": 'algorithm={"name": ..., "loss": ...}',
    "max_tokens": 'agents={"*": {"sampling": {"max_tokens": ...}}}',
}


def _refused(*given: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        load_config(*given)
    return str(refused.value)


@pytest.mark.parametrize("key", MEANT)
@pytest.mark.parametrize("section", ["", "train."])
def test_a_name_of_trl_leads_to_the_setting_in_yaml_and_with_set(key: str, section: str) -> None:
    nested = {"train": {key: 1}} if section else {key: 1}
    said = _refused({**CONFIG, **nested})
    assert said.startswith(f"{section}{key}: unknown key; ") and MEANT[key] in said
    assert _refused(CONFIG, [f"{section}{key}=1"]) == said
    assert "\n" not in said


def test_a_name_of_trl_in_an_algorithm_leads_to_the_setting() -> None:
    config = load_config(CONFIG, ["algorithm.name=magrpo", "algorithm.loss.epsilon=0.2"])
    with pytest.raises(ConfigError, match=r"TRL's epsilon is algorithm\.loss\.clip here$"):
        build_algorithm(config)


@pytest.mark.parametrize("key", [*ARGUMENTS, *(key for key in MEANT if key != "seed")])
def test_a_name_of_trl_as_a_keyword_leads_to_the_argument(key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        colearn.train("str_build", **{key: 1})  # type: ignore[arg-type]
    said = str(refused.value)
    assert said.startswith(f"{key}: no such argument; ") and "known: " not in said
    assert ARGUMENTS.get(key, "") in said


def test_in_a_suite_the_setting_is_below_each() -> None:
    with pytest.raises(ConfigError, match=r"^beta: .* is each\.algorithm\.loss\.kl here$"):
        load_suite("mhgpo", ["beta=0.1"])


@pytest.mark.parametrize("key", TARGETS)
def test_every_setting_that_an_error_names_exists(key: str) -> None:
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


@pytest.mark.parametrize("key", [key for key in TARGETS if key != "run.seed"])
def test_an_argument_of_python_holds_the_dotted_key(key: str) -> None:
    given = eval(f"dict({as_argument(key)})")
    paths = {path.replace("models.", "models.*.") for path in _paths(given, "")}
    assert key in paths
    assert paths - {key} <= {f"{key.split('.')[0]}.name", "models.*.path", "critic.path"}


def _paths(value: Any, above: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield above
        return
    for key, below in value.items():
        yield from _paths(below, f"{above}.{key}" if above else key)
