"""Every algorithm on both kinds of play, and every variant of the parts: one iteration each."""

from __future__ import annotations

import math

import pytest
import torch
from tiny import register, save_model

from colearn.config import Config
from colearn.contract import NetworkKey
from colearn.registry import algorithm_class, names
from colearn.rollout.grow import grow
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater

SELF_PLAY = {"marshal", "mt_grpo", "spiral_rae", "trajectory_grpo"}
"""They are paid as players and compare episodes of one item: see test_self_play."""
ALGORITHMS = sorted(
    name for name in names("algorithms") if algorithm_class(name).learns and name not in SELF_PLAY
)
SINGLE = {"ac", "grpo"}
"""Their team is one agent."""
CRITIC = {"collm_cc", "collm_dc", "coma", "ac", "mappo", "mappo_call"}
LORA = {"rank": 2}
IN_TURN = {"sequential": True, "horizon": 4}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "actor": save_model(folder / "actor"),
        "teacher": save_model(folder / "teacher", seed=2),
        "other": save_model(folder / "other", "llama", merges=True, seed=1),
    }


@pytest.fixture(autouse=True)
def notes(monkeypatch):
    register(monkeypatch, notes="tiny:Notes")


def config_of(
    paths, algorithm, *, task=None, lora=None, critic=None, train=None, models=None, agents=None
):
    name = algorithm["name"]
    samples = {} if name in CRITIC else {"rollout": {"k": 2}}
    settings = {
        "task": {
            "name": "notes",
            "agents": 1 if name in SINGLE else 2,
            "horizon": 2,
            "items": 2,
            **(task or {}),
        },
        "algorithm": {**samples, **algorithm},
        "models": models
        or {
            "*": {
                "path": paths["actor"],
                "teacher": paths["teacher"],
                "learning_rate": 1e-2,
                "lora": lora,
            }
        },
        "agents": {"*": {"sampling": {"max_tokens": 4}}, **(agents or {})},
        "train": {"episodes": 2, "token_budget": 600, **(train or {})},
        "run": {"device": "cpu"},
    }
    if name in CRITIC:
        own = "actor" if name == "mappo" else "other"  # a critic of tokens reads the actor's words
        critic = critic or {"path": paths[own]}
        # a head on the actor has the rate of its model
        settings["critic"] = critic if "share" in critic else {**critic, "learning_rate": 1e-2}
    return Config.model_validate(settings)


def placed(paths, critic):
    """The settings of a critic whose path is one of `paths`."""
    return {**critic, "path": paths[critic["path"]]} if "path" in critic else critic


def rolled_out(parts, seed=0):
    task = parts.run.task
    return grow(task, task.items("train"), parts.players, parts.run.parts.rollout, seed=seed)[0]


def learn(config, iterations=1):
    """Roll out and update; the team, each iteration's metrics, and by learner what moved."""
    parts = load_team(config)
    updater = build_updater(parts)
    before = {
        name: {key: value.clone() for key, value in learner.weights().items()}
        for name, learner in parts.learners.items()
    }
    metrics = [
        updater.update(rolled_out(parts, seed=iteration), iteration)
        for iteration in range(iterations)
    ]
    moved = {
        str(name): {
            key for key, v in learner.weights().items() if not torch.equal(v, before[name][key])
        }
        for name, learner in parts.learners.items()
    }
    return parts, metrics, moved


def assert_learned(config, iterations=1):
    parts, (*_, metrics), moved = learn(config, iterations)
    assert {key: v for key, v in metrics.items() if not math.isfinite(v)} == {}
    assert [name for name, keys in moved.items() if not keys] == []
    return parts, metrics, moved


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_in_simultaneous_play_whose_episodes_end_early(paths, name):
    task = {"ends": True, "horizon": 3, "items": 3}
    assert_learned(config_of(paths, {"name": name}, task=task))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_in_sequential_play_by_epochs_and_minibatches(paths, name):
    train = {"epochs": 2, "minibatch": 4}
    _, metrics, _ = assert_learned(config_of(paths, {"name": name}, task=IN_TURN, train=train))
    trees = 2 if name == "mhgpo_is" else 1  # of each of two items: one for each agent
    assert metrics["optimizer_steps"] == 2 * 2 * trees


@pytest.mark.parametrize(
    ("name", "bootstrap", "task"),
    [
        ("collm_cc", {}, IN_TURN),
        ("collm_dc", {"lam": 1.0, "steps": 2}, {}),
        ("collm_cc", {"lam": 0.95}, {}),
        ("collm_dc", {"lam": 1.0}, IN_TURN),
        ("mappo_call", {"lam": 0.95}, IN_TURN),
    ],
    ids=["td", "n_step", "gae", "mc", "calls"],
)
def test_critics_bootstrap_in_every_way(paths, name, bootstrap, task):
    assert_learned(config_of(paths, {"name": name, "advantage": bootstrap}, task=task))


VALUES = {"v": {}, "q": {"critic": {"value": "q"}, "advantage": {"name": "q_value"}}}


@pytest.mark.parametrize(
    ("name", "task"), [("collm_cc", IN_TURN), ("collm_dc", {})], ids=["in turn", "at once"]
)
def test_a_q_critic_learns(paths, name, task):
    """Twice: Q is 0 everywhere at first, so the actors have nothing to follow."""
    assert_learned(config_of(paths, {"name": name, **VALUES["q"]}, task=task), iterations=2)


PLACES = {
    "own model": ({}, {"path": "other"}),
    "own adapter": ({}, {"path": "other", "lora": LORA}),
    "adapter on the shared base": ({"lora": LORA}, {"path": "actor", "lora": LORA}),
    "head on the actor": ({}, {"share": "actor"}),
    "head on the actor's adapter": ({"lora": LORA}, {"share": "actor"}),
}


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("collm_cc", "v", "own model"),
        ("collm_dc", "v", "own adapter"),
        ("collm_dc", "q", "adapter on the shared base"),
        ("collm_dc", "q", "head on the actor"),
        ("collm_dc", "v", "head on the actor's adapter"),
    ],
)
def test_a_critic_learns_wherever_it_lives(paths, name, value, place):
    changes, critic = PLACES[place]
    algorithm = {"name": name, **VALUES[value]}
    config = config_of(paths, algorithm, critic=placed(paths, critic), **changes)
    parts, _, moved = assert_learned(config, iterations=2)
    heads = {
        learner for learner, keys in moved.items() if any(key.startswith("head.") for key in keys)
    }
    readers = {"collm_cc": {"critic-team"}, "collm_dc": {"critic-ada", "critic-ben"}}[name]
    assert heads == ({"actor-ada", "actor-ben"} if "head" in place else readers)
    assert len(parts.networks) == len(parts.learners)


def test_a_shared_base_is_loaded_once_and_frozen(paths):
    config = config_of(
        paths, {"name": "collm_cc"}, lora=LORA, critic={"path": paths["actor"], "lora": LORA}
    )
    parts, _, moved = assert_learned(config, iterations=2)
    bases = {id(network.base) for network in parts.networks.values()}
    assert len(bases) == 1
    for name, keys in moved.items():
        others = {key for other in moved if other != name for key in moved[other]}
        assert all(key.startswith(("adapter.", "head.")) for key in keys)
        assert {key for key in keys & others if not key.startswith("head.")} == set()


def test_a_critic_learns_without_global_info(paths):
    assert_learned(config_of(paths, {"name": "collm_cc", "critic": {"global_info": False}}))


def test_global_info_reaches_the_critic_and_no_agent(paths):
    parts = load_team(config_of(paths, {"name": "collm_cc"}))
    trees = rolled_out(parts)
    critic = build_updater(parts).critic
    tokenize = critic.tokenize
    told = tuple(tokenize("\n[global 1]\nturn 1"))
    stream = critic.rows(trees)["team"][0][0].tokens
    assert any(stream[n : n + len(told)] == told for n in range(len(stream)))
    for node in trees[0].nodes:
        assert all("turn" not in seen.text for seen in node.observations.values())


@pytest.mark.parametrize(
    ("algorithm", "critic"),
    [
        ({"value_loss": {"clip": 0.2, "frozen_targets": True}}, {"path": "other"}),
        ({"value_loss": {"clip": 0.2, "frozen_targets": True}}, {"share": "actor"}),
        ({"discount": 0.9, "advantage": {"normalize": True, "clip": 0.2}}, {"path": "other"}),
    ],
    ids=["own model", "head on the actor", "discount and normalised"],
)
def test_variants_of_the_value_loss_learn(paths, algorithm, critic):
    config = config_of(
        paths,
        {"name": "collm_dc", **algorithm},
        critic=placed(paths, critic),
        train={"epochs": 2, "minibatch": 2},
    )
    assert_learned(config)


@pytest.mark.parametrize(
    ("name", "loss", "lora"),
    [
        ("magrpo", {"entropy": 0.01}, LORA),
        ("collm_dc", {"ratio": "token", "reduction": "token_mean"}, None),
        ("magrpo", {"clip": 0.2, "clip_high": 0.3, "dual_clip": 3.0}, None),
    ],
    ids=["entropy", "token ratio", "clip"],
)
def test_variants_of_the_policy_loss_learn(paths, name, loss, lora):
    config = config_of(
        paths, {"name": name, "loss": loss}, lora=lora, train={"epochs": 2, "minibatch": 4}
    )
    assert_learned(config)


@pytest.mark.parametrize("lora", [None, LORA], ids=["full weights", "lora"])
def test_the_divergence_from_the_reference_starts_at_zero_and_grows(paths, lora):
    config = config_of(paths, {"name": "magrpo", "loss": {"kl": 0.1}}, lora=lora)
    _, (first, second), _ = learn(config, iterations=2)
    assert abs(first["ada/kl"]) < 1e-6
    assert second["ada/kl"] > 1e-5


def test_a_reference_goes_with_a_head_on_the_actor(paths):
    algorithm = {"name": "collm_dc", "loss": {"kl": 0.1}}
    assert_learned(config_of(paths, algorithm, lora=LORA, critic={"share": "actor"}))


@pytest.mark.parametrize(
    ("shape", "task"), [("tree", IN_TURN), ("cross", {}), ("parallel", IN_TURN)]
)
def test_group_algorithms_learn_on_every_shape(paths, shape, task):
    algorithm = {"name": "marloo", "rollout": {"name": shape, "k": 2}}
    assert_learned(config_of(paths, algorithm, task=task))


@pytest.mark.parametrize(
    ("name", "critic"),
    [
        ("magrpo", {}),
        ("collm_cc", {"path": "other"}),
        ("collm_dc", {"path": "other"}),
    ],
    ids=["group", "central", "decentral"],
)
def test_a_frozen_agent_plays_and_does_not_learn(paths, name, critic):
    models = {
        "ada": {"path": paths["actor"], "learning_rate": 1e-2},
        "ben": {"path": paths["actor"], "trained": False},
    }
    config = config_of(paths, {"name": name}, models=models, critic=placed(paths, critic))
    parts, [metrics], moved = learn(config)
    assert all(map(math.isfinite, metrics.values()))
    assert "actor-ada" in moved and "actor-ben" not in moved
    still = {name for name, keys in moved.items() if not keys}
    assert still == moved.keys() & {"critic-ben"}, "a critic that nobody who learns would ask"
    frozen = parts.networks[NetworkKey("actor", "ben")].base.causal
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


@pytest.mark.parametrize("name", ["magrpo", "collm_cc"])
def test_agents_with_different_models_and_tokenizers_learn(paths, name):
    models = {
        "ada": {"path": paths["actor"], "learning_rate": 1e-2},
        "ben": {"path": paths["other"], "learning_rate": 1e-2},
    }
    assert_learned(config_of(paths, {"name": name}, models=models))


@pytest.mark.parametrize("name", ["magrpo", "collm_cc"])
def test_agents_with_a_context_window_learn(paths, name):
    agents = {"ada": {"window": 40, "sampling": {"max_tokens": 6}}}
    config = config_of(paths, {"name": name}, agents=agents, task={"horizon": 3})
    _, metrics, _ = assert_learned(config)
    assert metrics["ada/logprob_mismatch"] < 1e-5


def test_three_agents_in_turn_on_one_model_learn(paths):
    models = {"one": {"path": paths["actor"], "learning_rate": 1e-2}}
    config = config_of(
        paths,
        {"name": "collm_cc"},
        models=models,
        agents={a: {"model": "one"} for a in ("ada", "ben", "cleo")},
        task={"agents": 3, "sequential": True, "horizon": 3},
    )
    assert_learned(config, iterations=2)
