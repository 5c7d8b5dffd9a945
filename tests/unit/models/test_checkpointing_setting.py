"""`models.*.checkpointing` and `critic.checkpointing` reach the networks that train."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import Config
from colearn.errors import ConfigError
from colearn.training.load_team import load_team


@pytest.fixture
def networks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    register(monkeypatch, notes="tiny:Notes")
    path = save_model(tmp_path / "model", "llama")

    def build(model: dict[str, Any], critic: dict[str, Any]) -> dict[str, bool]:
        team = load_team(
            Config.model_validate(
                {
                    "task": {"name": "notes", "horizon": 2, "items": 3},
                    "algorithm": {"name": "collm_cc"},
                    "models": {"ada": {"path": path, **model}, "ben": {"path": path}},
                    "agents": {"ada": {"model": "ada"}, "ben": {"model": "ben"}},
                    "critic": {"path": path, **critic},
                    "run": {"device": "cpu"},
                }
            )
        )
        return {str(key): network.checkpointing for key, network in team.networks.items()}

    return build


@pytest.mark.parametrize("lora", [None, {"rank": 2}])
def test_each_section_sets_its_own_networks(networks: Any, lora: Any) -> None:
    on = {"checkpointing": True, "lora": lora}
    assert networks(on, {"lora": lora}) == {
        "actor-ada": True,
        "actor-ben": False,
        "critic-team": False,
    }
    assert networks({"lora": lora}, on)["critic-team"]


def test_an_architecture_without_such_layers_is_refused(
    networks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colearn.models.build_networks.checkpointed_layers", lambda model: [])
    with pytest.raises(ConfigError, match=r"^models\.ada\.checkpointing: LlamaForCausalLM has no"):
        networks({"checkpointing": True}, {})
