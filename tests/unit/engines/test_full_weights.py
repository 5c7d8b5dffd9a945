"""Full weights to a server: what the files hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import byte_tokenizer, tiny_model
from torch import Tensor

from colearn.contract import Sampling
from colearn.engines import one_server
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.engines.vllm_server_checks import Served
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat


class Link:
    """Reads the files that a server is told to load."""

    url = "http://127.0.0.1:8000"

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.files: list[dict[str, Tensor]] = []
        self.bytes = 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        if path == "/collective_rpc":
            self.folders.append(body["kwargs"]["weights_path"])
            file = Path(self.folders[-1]) / "model.safetensors"
            self.bytes = file.stat().st_size
            self.files.append(load_file(file))
        return {"success": True}

    def close(self) -> None:
        pass


@pytest.fixture
def tied() -> Base:
    model = tiny_model("qwen3")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return Base(model)


def unique_bytes(base: Base, size: int) -> int:
    return size * sum(parameter.numel() for parameter in base.causal.parameters())


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Link:
    """The link of every server."""
    one = Link()
    monkeypatch.setattr(one_server, "ServerLink", lambda *_, **__: one)
    monkeypatch.setattr(one_server, "check_server", lambda *_: Served("base", 64))
    return one


def built(base: Base) -> VLLMServerEngine:
    roles = {"ann": AgentSpec(adapter=None, chat=ChatFormat(byte_tokenizer()), sampling=Sampling())}
    return VLLMServerEngine(base, roles, VLLMServer(), ["http://a", "http://b"])


def test_a_tied_head_is_written_once_for_a_server_on_a_device(
    tied: Base, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bfloat16: two bytes for each parameter, and a header of names."""
    tied.compute = torch.bfloat16
    monkeypatch.setattr(Base, "device", torch.device("cuda"))
    engine = built(tied)
    assert sum(one.nbytes for one in link.files[0].values()) == unique_bytes(tied, 2)
    assert link.bytes < unique_bytes(tied, 2) + 16_384
    assert list(engine.folder.iterdir()) == []


def test_on_the_cpu_a_tied_head_comes_under_its_own_name_too(tied: Base, link: Link) -> None:
    built(tied)
    written = link.files[0]
    assert torch.equal(written["lm_head.weight"], written["model.embed_tokens.weight"])
