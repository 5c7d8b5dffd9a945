"""A kind of generator on fake vLLM servers, for the tests that every engine passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fake_vllm_server import FakeVLLMServer
from vllm_cases import byte_tokenizer

from colearn.contract import GeneratorKind, TokenEngine
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_weights import write_model
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec


@dataclass(frozen=True)
class Served(GeneratorKind):
    """Builds the generator of `count` fake servers of the base that it is given."""

    folder: Path
    count: int = 1
    servers: list[FakeVLLMServer] = field(default_factory=list)

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        folder = self.folder / str(len(self.servers))
        write_model(folder, base, byte_tokenizer())
        started = [FakeVLLMServer(folder) for _ in range(self.count)]
        self.servers.extend(started)
        urls = tuple(one.url for one in started)
        return VLLMServer(url=urls if self.count > 1 else urls[0]).build(base, roles)

    def close(self) -> None:
        for server in self.servers:
            server.close()
