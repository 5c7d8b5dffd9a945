"""Every algorithm on both kinds of play, and every variant of the parts: one iteration each."""

from __future__ import annotations

import itertools
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
OWN_VALUES = {"mappo", "coma"}
"""Neither V nor Q of histories: one advantage fits their critic."""
LORA = {"rank": 2}
KINDS = {"simultaneous": {}, "sequential": {"sequential": True, "horizon": 4}}


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
            "items": 3,
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
        "train": {"episodes": 3, "token_budget": 600, **(train or {})},
        "run": {"device": "cpu"},
    }
    if name in CRITIC:
        own = "actor" if name == "mappo" else "other"  # a critic of tokens reads the actor's words
        critic = critic or {"path": paths[own]}
        # a head on the actor has the rate of its model
        settings["critic"] = critic if "share" in critic else {**critic, "learning_rate": 1e-2}
    return Config.model_validate(settings)


def learn(config, iterations=1):
    """Roll out and update; the team, the last metrics, and by learner what moved."""
    parts = load_team(config)
    updater = build_updater(parts)
    before = {
        name: {key: value.clone() for key, value in learner.weights().items()}
        for name, learner in parts.learners.items()
    }
    for iteration in range(iterations):
        trees, _ = grow(
            parts.run.task,
            parts.run.task.items("train"),
            parts.players,
            parts.run.parts.rollout,
            seed=iteration,
        )
        metrics = updater.update(trees, iteration)
    moved = {
        str(name): {
            key for key, v in learner.weights().items() if not torch.equal(v, before[name][key])
        }
        for name, learner in parts.learners.items()
    }
    return parts, metrics, moved


def assert_learned(config, iterations=1):
    parts, metrics, moved = learn(config, iterations)
    assert {key: v for key, v in metrics.items() if not math.isfinite(v)} == {}
    assert [name for name, keys in moved.items() if not keys] == []
    return parts, metrics, moved


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_in_both_kinds_of_play(paths, name, kind):
    assert_learned(config_of(paths, {"name": name}, task=KINDS[kind]))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_where_episodes_end_early(paths, name):
    assert_learned(config_of(paths, {"name": name}, task={"ends": True, "horizon": 3}))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_takes_several_epochs_and_minibatches(paths, name):
    config = config_of(paths, {"name": name}, train={"epochs": 2, "minibatch": 2})
    _, metrics, _ = assert_learned(config)
    trees = 2 if name == "mhgpo_is" else 1  # of each of three items: one for each agent
    assert metrics["optimizer_steps"] == 2 * 3 * trees


BOOTSTRAPS = {
    "td": {},
    "n_step": {"lam": 1.0, "steps": 2},
    "gae": {"lam": 0.95},
    "mc": {"lam": 1.0},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize("name", sorted(CRITIC - OWN_VALUES))
def test_critics_bootstrap_in_every_way(paths, name, bootstrap, kind):
    algorithm = {"name": name, "advantage": BOOTSTRAPS[bootstrap]}
    assert_learned(config_of(paths, algorithm, task=KINDS[kind]))


VALUES = {"v": {}, "q": {"critic": {"value": "q"}, "advantage": {"name": "q_value"}}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(CRITIC - OWN_VALUES))
def test_a_q_critic_learns(paths, name, kind):
    """Twice: Q is 0 everywhere at first, so the actors have nothing to follow."""
    config = config_of(paths, {"name": name, **VALUES["q"]}, task=KINDS[kind])
    assert_learned(config, iterations=2)


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
        (name, value, place)
        for name, value, place in itertools.product(("collm_cc", "collm_dc"), "vq", PLACES)
        if not (name == "collm_cc" and "head" in place)
    ],
)
def test_a_critic_learns_wherever_it_lives(paths, name, value, place):
    changes, critic = PLACES[place]
    critic = {**critic, **({"path": paths[critic["path"]]} if "path" in critic else {})}
    config = config_of(paths, {"name": name, **VALUES[value]}, critic=critic, **changes)
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


@pytest.mark.parametrize("name", sorted(CRITIC - OWN_VALUES))
def test_a_critic_learns_without_global_info(paths, name):
    assert_learned(config_of(paths, {"name": name, "critic": {"global_info": False}}))


def test_global_info_reaches_the_critic_and_no_agent(paths):
    parts = load_team(config_of(paths, {"name": "collm_cc"}))
    trees, _ = grow(
        parts.run.task,
        parts.run.task.items("train"),
        parts.players,
        parts.run.parts.rollout,
        seed=0,
    )
    critic = build_updater(parts).critic
    tokenize = critic.tokenize
    told = tuple(tokenize("\n[global 1]\nturn 1"))
    stream = critic.rows(trees)["team"][0][0].tokens
    assert any(stream[n : n + len(told)] == told for n in range(len(stream)))
    for node in trees[0].nodes:
        assert all("turn" not in seen.text for seen in node.observations.values())


VARIANTS = {
    "value clip": {"value_loss": {"clip": 0.2}},
    "frozen targets": {"value_loss": {"frozen_targets": True}},
    "both": {"value_loss": {"clip": 0.2, "frozen_targets": True}},
    "normalised": {"advantage": {"normalize": True}},
    "discount": {"discount": 0.9, "advantage": {"clip": 0.2}},
}


@pytest.mark.parametrize("share", [False, True], ids=["own model", "head on the actor"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_the_value_loss_learn(paths, variant, share):
    critic = {"share": "actor"} if share else {"path": paths["other"]}
    config = config_of(
        paths,
        {"name": "collm_dc", **VARIANTS[variant]},
        critic=critic,
        train={"epochs": 2, "minibatch": 2},
    )
    assert_learned(config)


LOSSES = {
    "entropy": {"entropy": 0.01},
    "token ratio": {"ratio": "token", "reduction": "token_mean"},
    "clip": {"clip": 0.2, "clip_high": 0.3, "dual_clip": 3.0},
    "kl": {"kl": 0.1},
}


@pytest.mark.parametrize("lora", [None, LORA], ids=["full weights", "lora"])
@pytest.mark.parametrize("name", ["magrpo", "collm_dc"])
@pytest.mark.parametrize("variant", LOSSES)
def test_variants_of_the_policy_loss_learn(paths, variant, name, lora):
    config = config_of(
        paths,
        {"name": name, "loss": LOSSES[variant]},
        lora=lora,
        train={"epochs": 2, "minibatch": 4},
    )
    assert_learned(config)


@pytest.mark.parametrize("lora", [None, LORA], ids=["full weights", "lora"])
@pytest.mark.parametrize("name", ["magrpo", "collm_dc"])
def test_the_divergence_from_the_reference_starts_at_zero_and_grows(paths, name, lora):
    config = config_of(paths, {"name": name, "loss": {"kl": 0.1}}, lora=lora)
    _, first, _ = learn(config)
    _, second, _ = learn(config, iterations=2 if name == "magrpo" else 3)
    assert abs(first["ada/kl"]) < 1e-6
    assert second["ada/kl"] > 1e-5


@pytest.mark.parametrize("lora", [None, LORA], ids=["full weights", "lora"])
def test_a_reference_goes_with_a_head_on_the_actor(paths, lora):
    config = config_of(
        paths, {"name": "collm_dc", "loss": {"kl": 0.1}}, lora=lora, critic={"share": "actor"}
    )
    assert_learned(config)


@pytest.mark.parametrize("shape", ["tree", "cross", "parallel"])
@pytest.mark.parametrize("kind", KINDS)
def test_group_algorithms_learn_on_every_shape(paths, shape, kind):
    assert_learned(
        config_of(paths, {"name": "marloo", "rollout": {"name": shape, "k": 2}}, task=KINDS[kind])
    )


@pytest.mark.parametrize(
    ("name", "critic"),
    [
        ("magrpo", {}),
        ("collm_cc", {"path": "other"}),
        ("collm_dc", {"path": "other"}),
        ("collm_dc", {"share": "actor"}),
    ],
    ids=["group", "central", "decentral", "head"],
)
def test_a_frozen_agent_plays_and_does_not_learn(paths, name, critic):
    models = {
        "ada": {"path": paths["actor"], "learning_rate": 1e-2},
        "ben": {"path": paths["actor"], "trained": False},
    }
    critic = {**critic, **({"path": paths["other"]} if "path" in critic else {})}
    config = config_of(paths, {"name": name}, models=models, critic=critic)
    parts, metrics, moved = learn(config)
    assert all(map(math.isfinite, metrics.values()))
    assert "actor-ada" in moved and "actor-ben" not in moved
    still = {name for name, keys in moved.items() if not keys}
    assert still == moved.keys() & {"critic-ben"}, "a critic that nobody who learns would ask"
    frozen = parts.networks[NetworkKey("actor", "ben")].base.causal
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


@pytest.mark.parametrize("name", ["magrpo", "collm_cc", "collm_dc"])
def test_agents_with_different_models_and_tokenizers_learn(paths, name):
    models = {
        "ada": {"path": paths["actor"], "learning_rate": 1e-2},
        "ben": {"path": paths["other"], "learning_rate": 1e-2},
    }
    assert_learned(config_of(paths, {"name": name}, models=models))


@pytest.mark.parametrize("name", ["magrpo", "collm_cc", "collm_dc"])
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
