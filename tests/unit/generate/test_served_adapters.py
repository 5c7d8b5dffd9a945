"""Adapters on a server that records what it is told: names, versions, weights and zeros."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import save_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings
from colearn.errors import ServerLost
from colearn.generate.served_adapters import ServedAdapters
from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights


class Server:
    """Stands for the link to a server: the weights of each adapter that it has loaded, by name."""

    def __init__(self) -> None:
        self.loaded: dict[str, dict[str, torch.Tensor]] = {}

    def call(self, method: str, path: str, body: Mapping[str, str], **_: Any) -> None:
        if path == "/v1/unload_lora_adapter":
            del self.loaded[body["lora_name"]]
        else:
            folder = Path(body["lora_path"])
            self.loaded[body["lora_name"]] = load_file(folder / "adapter_model.safetensors")


@pytest.fixture
def base(tmp_path: Path) -> Base:
    base = Base(AutoModelForCausalLM.from_pretrained(save_model(tmp_path / "model")))
    base.model.requires_grad_(False)
    for name in ("first", "second"):
        base.add_adapter(name, LoRASettings(rank=2))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter)
    return base


def begun(base: Base, folder: Path, *, zeros: bool = False) -> tuple[ServedAdapters, Server]:
    server = Server()
    served = ServedAdapters(server, base, ("first", "second"), folder, "run")
    served.begin(zeros=zeros)
    return served, server


def same(weights: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> bool:
    return weights.keys() == others.keys() and all(weights[k].equal(others[k]) for k in weights)


def test_each_adapter_is_served_with_its_own_weights(base: Base, tmp_path: Path) -> None:
    served, server = begun(base, tmp_path)
    for name in ("first", "second"):
        assert same(server.loaded[served.served(name)], adapter_weights(base, name))


def test_a_new_version_has_a_new_name_and_the_new_weights_and_the_previous_one_is_unloaded(
    base: Base, tmp_path: Path
) -> None:
    served, server = begun(base, tmp_path)
    other, previous = served.served("second"), served.served("first")
    new = {name: tensor + 1.0 for name, tensor in adapter_weights(base, "first").items()}
    served.write("first", new)
    assert served.served("first") != previous
    assert set(server.loaded) == {served.served("first"), other}
    assert same(server.loaded[served.served("first")], new)


def test_a_role_without_an_adapter_is_served_zeros(base: Base, tmp_path: Path) -> None:
    served, server = begun(base, tmp_path, zeros=True)
    zeros = server.loaded[served.served(None)]
    assert len(server.loaded) == 3 and zeros
    assert not any(tensor.any() for tensor in zeros.values())


def test_without_such_a_role_the_base_itself_answers(base: Base, tmp_path: Path) -> None:
    served, server = begun(base, tmp_path)
    assert served.served(None) is None and len(server.loaded) == 2


def test_nothing_is_left_on_the_server_or_the_disk(base: Base, tmp_path: Path) -> None:
    served, server = begun(base, tmp_path / "adapters", zeros=True)
    served.unload()
    assert server.loaded == {}
    assert not list((tmp_path / "adapters").glob("adapter-*"))


def test_what_was_unloaded_is_served_no_more(base: Base, tmp_path: Path) -> None:
    served, _ = begun(base, tmp_path, zeros=True)
    served.unload()
    assert served.served(None) is None and served.loaded == {}


def test_adapters_of_a_server_that_is_gone_are_gone_with_it(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, server = begun(base, tmp_path)
    asked: list[str] = []

    def gone(method: str, path: str, body: Mapping[str, str]) -> None:
        asked.append(path)
        raise ServerLost("the server is gone")

    monkeypatch.setattr(server, "call", gone)
    served.unload()
    assert asked == ["/v1/unload_lora_adapter"] and served.loaded == {}
