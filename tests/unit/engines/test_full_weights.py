"""Full weights to a server: what the files hold."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import byte_tokenizer, tiny_model
from torch import Tensor

from colearn.contract import Sampling
from colearn.engines.kinds import VLLMServer
from colearn.engines.one_server import OneServer
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat


class Link:
    """Reads the files that a server is told to load."""

    url = "http://127.0.0.1:8000"

    def __init__(self) -> None:
        self.files: list[dict[str, Tensor]] = []
        self.bytes = 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        if path == "/collective_rpc":
            file = Path(body["kwargs"]["weights_path"]) / "model.safetensors"
            self.bytes = file.stat().st_size
            self.files.append(load_file(file))
        return {"success": True}


@pytest.fixture
def tied() -> Base:
    model = tiny_model("qwen3")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return Base(model)


def unique_bytes(base: Base, size: int) -> int:
    return size * sum(parameter.numel() for parameter in base.causal.parameters())


def served(link: Link, base: Any, folder: Path) -> OneServer:
    roles = {"ann": AgentSpec(adapter=None, chat=ChatFormat(byte_tokenizer()), sampling=Sampling())}
    server = OneServer(base, roles, VLLMServer(), link.url, folder, starts=False)
    server.link.close()
    server.link = link  # type: ignore[assignment]
    return server


def test_a_tied_head_is_written_once_for_a_server_on_a_device(tied: Base, tmp_path: Path) -> None:
    """In bfloat16: two bytes for each parameter, and a header of names."""
    link = Link()
    on_device: Any = SimpleNamespace(device=torch.device("cuda"), compute=torch.bfloat16)
    served(link, on_device, tmp_path).write([weight_update(Network(tied, None), 1)])
    assert sum(one.nbytes for one in link.files[0].values()) == unique_bytes(tied, 2)
    assert link.bytes < unique_bytes(tied, 2) + 16_384
    assert list(tmp_path.iterdir()) == []


def test_on_the_cpu_a_tied_head_comes_under_its_own_name_too(tied: Base, tmp_path: Path) -> None:
    link = Link()
    served(link, tied, tmp_path).write([weight_update(Network(tied, None), 1)])
    (written,) = link.files
    assert torch.equal(written["lm_head.weight"], written["model.embed_tokens.weight"])
