"""The default of `critic.baseline`: means by item for values that they can serve, recorded with the
run."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import Notes

from colearn.config import dump_config, load_config, resolve, with_critic_baseline
from colearn.errors import ConfigError

OWN = {"path": "y"}
Q = {"critic": {"value": "q"}, "advantage": {"name": "q_value"}}


def config(algorithm: Any, critic: Any) -> Any:
    return load_config(
        {
            "task": {"name": "notes"},
            "algorithm": algorithm if isinstance(algorithm, dict) else {"name": algorithm},
            "models": {"*": {"path": "x"}},
            "critic": critic,
        }
    )


def baseline(algorithm: Any, critic: Any) -> Any:
    return resolve(config(algorithm, critic), task=Notes()).config.critic.baseline


@pytest.mark.parametrize("algorithm", ["collm_cc", "collm_dc", "mappo_call"])
def test_a_critic_of_its_own_that_values_histories_has_means_by_item(algorithm: str) -> None:
    assert baseline(algorithm, OWN) == "item"


def test_a_value_head_on_the_actor_has_none() -> None:
    assert baseline("collm_dc", {"share": "actor"}) == "none"


@pytest.mark.parametrize(
    "algorithm", [{"name": "collm_cc", **Q}, "coma", "mappo"], ids=["q", "counterfactual", "tokens"]
)
def test_values_of_actions_and_of_tokens_have_none(algorithm: Any) -> None:
    assert baseline(algorithm, OWN) == "none"


def test_an_optimistic_value_has_none() -> None:
    optimistic = {"expectile": 0.98, "anneal_fraction": 0.5}
    assert baseline({"name": "collm_cc", "value_loss": optimistic}, OWN) == "none"


@pytest.mark.parametrize("critic", [OWN, {"share": "actor"}], ids=["own", "shared"])
def test_none_can_be_set(critic: dict[str, str]) -> None:
    assert baseline("collm_dc", {**critic, "baseline": "none"}) == "none"


def test_means_by_item_can_be_set_where_they_are_no_default() -> None:
    assert baseline("coma", {**OWN, "baseline": "item"}) == "item"


def test_a_value_head_on_the_actor_cannot_have_means_by_item() -> None:
    with pytest.raises(ConfigError, match=r"^critic: [^\n]*baseline needs a critic of its own"):
        config("collm_dc", {"share": "actor", "baseline": "item"})


def test_a_critic_that_is_given_brings_its_own() -> None:
    assert baseline("collm_cc", {"from": "folder"}) is None


def test_a_resumed_run_keeps_the_baseline_that_it_recorded() -> None:
    made = config("collm_cc", OWN)
    parts = resolve(made, task=Notes()).parts
    for kept in ("none", "item"):
        recorded = config("collm_cc", {**OWN, "baseline": kept})
        resumed = with_critic_baseline(made, parts, recorded)
        assert resumed.critic is not None and resumed.critic.baseline == kept


def test_what_is_recorded_of_a_baseline_is_read_as_it_was() -> None:
    import yaml

    run = resolve(config("collm_cc", OWN), task=Notes())
    settings = yaml.safe_load(dump_config(run.config))
    assert settings["critic"]["baseline"] == "item"
