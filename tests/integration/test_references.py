"""A reference policy that follows its model: when, what it then says, and what a resume keeps."""

from __future__ import annotations

import json

import pytest
from tiny import register, save_model

from colearn.config import Config
from colearn.contract import NetworkKey
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "actor")


@pytest.fixture(scope="module", autouse=True)
def notes():
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module", params=[None, {"rank": 2}], ids=["full", "adapter"])
def lora(request):
    return request.param


@pytest.fixture(scope="module")
def whole(model, lora, tmp_path_factory):
    """The folder of a run of four iterations, whose reference follows every two."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    Experiment(config_of(model, lora=lora), folder).run()
    return folder


def config_of(model, *, lora=None, reference_update_every=2, iterations=4):
    return Config.model_validate(
        {
            "task": {"name": "notes", "horizon": 1, "items": 2},
            "algorithm": {
                "name": "magrpo",
                "loss": {
                    "kl": 0.5,
                    **(
                        {}
                        if reference_update_every is None
                        else {"reference_update_every": reference_update_every}
                    ),
                },
            },
            "models": {"player": {"path": model, "learning_rate": 1e-2, "lora": lora}},
            "agents": {"*": {"model": "player", "sampling": {"max_tokens": 4}}},
            "train": {"environment_steps": iterations * 8, "episodes": 2},
            "evaluation": {"every": 100},
            "run": {"device": "cpu", "checkpoint_every": 1},
        }
    )


def divergences(folder):
    """KL(policy || reference) before the step of each iteration."""
    recorded = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["metrics"]["player/kl"] for line in recorded if line["kind"] == "update"]


def test_the_reference_becomes_the_policy_every_so_many_iterations(whole):
    first, second, third, fourth = divergences(whole)
    assert first == pytest.approx(0.0, abs=1e-9)
    assert second > 1e-6
    assert third == pytest.approx(0.0, abs=1e-9), "two updates are over: it has followed"
    assert fourth > 1e-6


def test_a_reference_that_stays_is_left_behind_also_by_an_actor_with_a_head(model, lora, tmp_path):
    config = config_of(model, lora=lora, reference_update_every=None, iterations=3).model_dump(
        exclude_unset=True
    )
    if lora is None:
        config["algorithm"]["name"] = "collm_dc"
        config["critic"] = {"share": "actor"}
    Experiment(Config.model_validate(config), tmp_path / "run").run()
    first, *later = divergences(tmp_path / "run")
    assert first == pytest.approx(0.0, abs=1e-9)
    assert min(later) > 1e-6


def test_what_follows_shares_no_weight_with_its_model(model, lora):
    parts = load_team(config_of(model, lora=lora))
    reference = parts.copies[NetworkKey("reference", "player")]
    kept = {name: weight.clone() for name, weight in reference.network.trained().items()}
    for parameter in parts.learners[NetworkKey("actor", "player")].parameters.values():
        parameter.data.add_(1.0)
    assert all(kept[name].equal(now) for name, now in reference.network.trained().items())
    reference.copy_weights()
    assert not any(kept[name].equal(now) for name, now in reference.network.trained().items())


def test_a_resumed_run_is_held_to_the_same_reference(model, lora, whole, tmp_path):
    """Stopped between two refreshes, its reference is neither the first policy nor the last."""
    Experiment(config_of(model, lora=lora, iterations=3), tmp_path / "part").run()
    text = (tmp_path / "part" / "config.yaml").read_text()
    (tmp_path / "part" / "config.yaml").write_text(
        text.replace("environment_steps: 24", "environment_steps: 32")
    )
    Experiment(config_of(model, lora=lora), tmp_path / "part", resume=True).run()
    assert divergences(tmp_path / "part") == divergences(whole)
