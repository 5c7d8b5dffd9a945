"""The engine of a fake vLLM server, as fixtures of the tests that import all of this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_engine import short_probes  # noqa: F401 - a fixture
from fake_vllm_server import FakeVLLMServer
from vllm_cases import byte_tokenizer, qwen

from colearn.config import LoRASettings
from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.engines.vllm_weights import write_model
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat

CHAT = ChatFormat(byte_tokenizer(), chat="plain")
CHAT.end_ids = frozenset({9, 3, 258})  # no model of these tests draws 258, and vLLM refuses it
PLAIN = {"ann": AgentSpec(adapter=None, chat=CHAT, sampling=Sampling(max_tokens=8))}


@pytest.fixture
def base() -> Base:
    return Base(qwen())


@pytest.fixture
def server(base: Base, tmp_path: Path) -> Iterator[FakeVLLMServer]:
    write_model(tmp_path / "model", base, byte_tokenizer())
    fake = FakeVLLMServer(tmp_path / "model")
    yield fake
    fake.close()


@pytest.fixture
def engine(base: Base, server: FakeVLLMServer) -> Iterator[VLLMServerEngine]:
    built = built_engine(base, PLAIN, server)
    yield built
    server.silent = server.gone = False
    built.close()


def built_engine(
    base: Base, voices: Mapping[str, AgentSpec], server: FakeVLLMServer, **settings: Any
) -> VLLMServerEngine:
    built = VLLMServer(**{"url": server.url, **settings}).build(base, voices)
    assert isinstance(built, VLLMServerEngine)
    return built


def adapted(base: Base, *names: str) -> dict[str, AgentSpec]:
    """Agents on adapters of these names, ann on the first."""
    base.model.requires_grad_(False)
    for name in names:
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter, std=0.2)
    sampling = Sampling(max_tokens=8)
    return {
        agent: AgentSpec(adapter=name, chat=CHAT, sampling=sampling)
        for agent, name in zip(("ann", "ben", "eve"), names, strict=False)
    }


def request(agent: str = "ann", **sampling: Any) -> TokenRequest:
    return TokenRequest(
        agent=agent,
        history=TokenHistory().observe((5, 6), None),
        sampling=Sampling(**{"max_tokens": 4, **sampling}),
        seeds=(7,),
    )
