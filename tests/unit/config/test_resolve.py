"""A run is resolved once, before any weight is loaded."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import Notes

from colearn.config import load_config, resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError

ACTORS = (NetworkKey("actor", "ada"), NetworkKey("actor", "ben"))
TEAM = NetworkKey("critic", "team")
CONFIG = {
    "task": {"name": "notes"},
    "algorithm": {"name": "collm_cc"},
    "models": {"*": {"path": "x"}},
    "critic": {"path": "y"},
}


def resolved(*sets: str, **sections: Any) -> Any:
    return resolve(load_config({**CONFIG, **sections}, sets), task=Notes())


def test_every_network_is_named_before_it_is_loaded() -> None:
    assert resolved().networks == (*ACTORS, TEAM)


def test_what_learns_is_what_is_trained_and_its_critic() -> None:
    run = resolved("models.ben.path=x", "models.ben.trained=false")
    assert list(run.learners) == [ACTORS[0], TEAM]


@pytest.mark.parametrize(
    ("section", "rank"), [("models.ben", None), ("models.ben", 2), ("critic", None)]
)
def test_a_network_that_is_trained_in_float16_is_one_line(section: str, rank: int | None) -> None:
    sets = [f"{section}.dtype=float16"]
    if section != "critic":
        sets.append("models.ben.path=x")
    if rank is not None:
        sets.append(f"{section}.lora.rank={rank}")
    with pytest.raises(ConfigError, match=rf"^{section}\.dtype: in float16 [^\n]*$"):
        resolved(*sets)
    if section == "models.ben":
        resolved("models.ben.path=x", "models.ben.dtype=float16", "models.ben.trained=false")


@pytest.mark.parametrize(("name", "value"), [("temperature", 0), ("top_k", 1)])
def test_a_trained_agent_that_decodes_greedily_is_one_line(name: str, value: int) -> None:
    greedy = (f"agents.ben.sampling.{name}={value}", "agents.ada.sampling.temperature=0.1")
    with pytest.raises(ConfigError, match=rf"^agents\.ben\.sampling\.{name}: {value} dec[^\n]*$"):
        resolved(*greedy)
    resolved(*greedy, "models.ben.path=x", "models.ben.trained=false", "evaluation.greedy=true")


def test_an_adapters_first_policy_needs_no_network_and_one_that_moves_does() -> None:
    kl = "algorithm.loss.kl=0.1"
    still, moving = (
        resolved(kl, "models.*.lora.rank=2"),
        resolved(kl, "models.*.lora.rank=2", "algorithm.loss.reference_update_every=5"),
    )
    assert [key.kind for key in still.networks].count("reference") == 0
    assert [key.kind for key in moving.networks].count("reference") == 2


def test_past_selves_are_copies_of_each_trained_model() -> None:
    run = resolved("cast.name=league", "cast.pool=2")
    assert [str(key) for key in run.networks if key.kind == "past"] == [
        *("past-0-ada", "past-0-ben", "past-1-ada", "past-1-ben")
    ]


def test_what_is_not_trained_is_followed_by_nothing() -> None:
    frozen = ("models.ben.path=x", "models.ben.trained=false")
    run = resolved("cast.name=league", "cast.pool=1", "algorithm.loss.kl=0.1", *frozen)
    following = [str(key) for key in run.networks if key.kind in ("reference", "past")]
    assert following == ["reference-ada", "past-0-ada"]


def test_heads_on_the_actors_are_no_networks() -> None:
    run = resolved(algorithm={"name": "collm_dc"}, critic={"share": "actor"})
    assert run.heads and run.networks == ACTORS
    assert run.value_models == {"ada": "ada", "ben": "ben"}


def test_where_nothing_is_learned_no_budget_is_used_and_no_adapter_loaded() -> None:
    run = resolved("models.*.lora.rank=2", algorithm={"name": "untrained"})
    assert (run.budget, run.learners, run.networks) == (0, {}, ACTORS)
    assert run.config.models["ada"].lora is None


def test_a_device_is_named_by_the_field_that_says_it() -> None:
    run = resolved("placement.ada=cuda:1", "run.device=cpu")
    assert run.device(ACTORS[0]) == ("cuda:1", "placement.ada")
    assert run.device(TEAM) == ("cpu", "run.device")


def test_a_critics_pace_is_the_teams_unless_it_has_its_own() -> None:
    frozen = "algorithm.value_loss.frozen_targets=true"
    run = resolved("train.epochs=3", frozen)
    assert (run.schedule_of(ACTORS[0]), run.schedule_of(TEAM)) == ((3, None), (3, None))
    run = resolved("train.epochs=3", "critic.epochs=5", frozen)
    assert (run.schedule_of(ACTORS[0]), run.schedule_of(TEAM)) == ((3, None), (5, None))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"critic": None}, "critic: this algorithm trains a critic"),
        (
            {"models": {"critic": {"path": "x"}}, "agents": {"*": {"model": "critic"}}},
            "models.critic: the metrics of this name are those of critics; set agents.ada.model",
        ),
        ({"critic": {"share": "actor"}}, "critic.share: a central critic reads every agent's text"),
        ({"critic": {"path": "y", "readers": {"ada": "a"}}}, "critic.readers.ada: this critic"),
        ({"models": {"*": {"path": "x", "trained": False}}}, "models: no model is trained"),
        (
            {"critic": {"path": "x", "epochs": 2}},
            "critic.epochs: the critic recomputes advantages",
        ),
        (
            {"agents": {"*": {"program": {"name": "legal"}}}, "algorithm": {"name": "untrained"}},
            "evaluation.exact: agents.ada is no language model",
        ),
        (
            {"algorithm": {"name": "mappo"}, "critic": {"share": "actor"}},
            "critic.share: this critic needs a value model of its own",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(sections: dict[str, Any], message: str) -> None:
    exact = {"evaluation": {"exact": message.startswith("evaluation")}}
    with pytest.raises(ConfigError) as caught:
        resolved(**exact, **sections)
    assert message in str(caught.value) and "\n" not in str(caught.value)


NOT_NAMES = ("", "a.b", "../..", "a/b", "a\\b", "*", " a", "a\n", "\u202ea", "x" * 61)


@pytest.mark.parametrize("name", NOT_NAMES)
@pytest.mark.parametrize("section", ["task.agents", "players", "models", "critic.readers"])
def test_what_cannot_be_a_module_a_folder_and_a_key_is_no_name(section: str, name: str) -> None:
    """Of an agent, a player, a model or a value model; a model `*` has the name of its user."""
    if section in ("models", "critic.readers") and name == "*":
        return
    task, sections = Notes(), dict[str, Any]()
    if section == "task.agents":
        task.agents = ("ada", name)
    elif section == "players":
        sections = {"players": {name: {"program": {"name": "legal"}}}}
    elif section == "critic.readers":
        sections = {"critic": {**CONFIG["critic"], "readers": {"team": name}}}
    else:
        sections = {
            "models": {**CONFIG["models"], name: {"path": "x"}},
            "agents": {"ada": {"model": name}, "*": {}},
        }
    with pytest.raises(ConfigError) as caught:
        resolve(load_config({**CONFIG, **sections}), task=task)
    assert str(caught.value).startswith(f"{section}: ")
    assert "cannot be a key, a folder and a metric" in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize("name", ["player_0", "Data Analyst", "Agent?team=0", "café", "💥" * 60])
def test_other_names_are_names(name: str) -> None:
    task = Notes()
    task.agents = ("ada", name)
    run = resolve(load_config(CONFIG), task=task)
    folders = [str(network) for network in run.networks]
    assert f"actor-{name}" in folders
    assert max(len(folder.encode()) for folder in folders) <= 255


@pytest.mark.parametrize(
    ("sets", "auto", "budget"),
    [
        ((), "cpu", 2048),
        ((), "cuda", 8192),
        ((), "mps", 2048),
        (("run.device=cuda:1",), "cpu", 8192),
        (("run.device=cpu",), "cuda", 2048),
        (("placement.critic=cpu",), "cuda", 2048),
        (("train.token_budget=300",), "cuda", 300),
    ],
)
def test_the_token_budget_follows_the_devices_unless_it_is_set(
    sets: tuple[str, ...], auto: str, budget: int
) -> None:
    run = resolve(load_config(CONFIG, sets), task=Notes(), auto=auto)
    assert run.token_budget == budget


@pytest.mark.parametrize(
    ("sets", "auto", "joint"),
    [
        ((), "cpu", False),
        ((), "cuda", True),
        (("placement.critic=cpu",), "cuda", False),
        (("train.joint_passes=true",), "cpu", True),
        (("train.joint_passes=false",), "cuda", False),
    ],
)
def test_joint_passes_follow_the_devices_unless_they_are_set(
    sets: tuple[str, ...], auto: str, joint: bool
) -> None:
    assert resolve(load_config(CONFIG, sets), task=Notes(), auto=auto).joint_passes == joint


@pytest.mark.parametrize(
    ("sets", "joins"),
    [
        ((), False),
        (("models.*.lora.rank=2",), True),
        (("models.*.lora.rank=2", "models.*.quantization=nf4"), False),
        (("models.*.lora.rank=2", "train.joint_passes=false"), False),
        (("models.*.lora.rank=2", "run.learner=deepspeed"), False),
        (("models.*.lora.rank=2", "run.host={name: ray, gpus: 1}"), False),
    ],
)
def test_adapters_join_a_pass_unless_their_weights_learner_or_host_have_passes_of_their_own(
    sets: tuple[str, ...], joins: bool
) -> None:
    run = resolve(load_config(CONFIG, sets), task=Notes(), auto="cuda")
    assert [run.joins(key) for key in ACTORS] == [joins, joins]
