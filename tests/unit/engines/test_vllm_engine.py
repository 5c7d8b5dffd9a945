"""The engine in this process, over a stand-in for vLLM's package that records what it is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from colearn.config import LoRASettings
from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.engines import vllm, vllm_options
from colearn.engines.kinds import VLLM
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat

CHAT = ChatFormat(byte_tokenizer())


class LLM:
    """Answers each request by an end token of log-probability -1, with two tokens cached."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.calls: list[str] = []
        self.loras: list[Any] = []
        self.llm_engine = self
        self.model_config = SimpleNamespace(max_model_len=64)
        self.engine_core = SimpleNamespace(shutdown=lambda: None)

    def add_lora(self, lora: Any) -> None:
        self.loras.append(lora)

    def remove_lora(self, number: int) -> None:
        self.loras = [lora for lora in self.loras if lora.number != number]

    def reset_prefix_cache(self) -> bool:
        return True

    def generate(self, prompts: Any, params: Any, *, lora_request: Any, **_: Any) -> list[Any]:
        self.calls.append("generate")
        self.asked = lora_request
        end = CHAT.end_id
        drawn = SimpleNamespace(token_ids=[end], logprobs=[{end: SimpleNamespace(logprob=-1.0)}])
        return [SimpleNamespace(outputs=[drawn], num_cached_tokens=2) for _ in prompts]

    def sleep(self, level: int) -> None:
        self.calls.append("sleep")

    def wake_up(self) -> None:
        self.calls.append("wake")


Engine = Callable[[Mapping[str, str | None]], vllm.VLLMEngine]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Builds an engine of agents with these adapters."""

    def lora(name: str, number: int, path: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, number=number, path=path)

    package, request = ModuleType("vllm"), ModuleType("vllm.lora.request")
    package.__spec__ = ModuleSpec("vllm", None)
    package.__dict__.update(LLM=LLM, SamplingParams=SimpleNamespace)
    request.__dict__.update(LoRARequest=lora)
    for name, module in {"": package, ".lora": ModuleType(""), ".lora.request": request}.items():
        monkeypatch.setitem(sys.modules, f"vllm{name}", module)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    base = Base(LlamaForCausalLM(config))
    base.model.requires_grad_(False)
    built: list[vllm.VLLMEngine] = []

    def build(adapters: Mapping[str, str | None]) -> vllm.VLLMEngine:
        for name in filter(None, adapters.values()):
            base.add_adapter(name, LoRASettings(rank=2))
        roles = {
            agent: AgentSpec(adapter=name, chat=CHAT, sampling=Sampling(max_tokens=4))
            for agent, name in adapters.items()
        }
        built.append(vllm.VLLMEngine(base, roles, VLLM()))
        return built[-1]

    yield build
    for one in built:
        one.close()


def asked(agent: str) -> TokenRequest:
    history = TokenHistory().observe([5, 6, 7], None)
    return TokenRequest(agent=agent, history=history, sampling=Sampling(max_tokens=4), seeds=(0,))


def test_an_answer_is_the_drawn_tokens_and_only_what_was_not_cached_counts_as_prefilled(
    engine: Engine,
) -> None:
    one = engine({"ann": None})
    (answer,) = one.sample([asked("ann")])
    assert (answer.action.tokens, answer.action.logprobs) == ((CHAT.end_id,), (-1.0,))
    assert (answer.action.finish, one.prefilled_tokens) == ("end", 3 - 2)


def test_a_request_names_the_current_version_of_its_adapter_and_zeros_without_one(
    engine: Engine,
) -> None:
    """vLLM refuses the number 0; on a CPU a row without an adapter would take another's."""
    one = engine({"ann": "second", "ben": "first", "cyd": None})
    llm = one.llm
    assert (llm.options["max_loras"], llm.options["max_lora_rank"]) == (3, 8)
    one.write([weight_update(Network(one.base, "first"), 1)])
    assert [lora.number for lora in llm.loras] == [2, 3, 4], "version 1 is unloaded"
    one.sample([asked(agent) for agent in ("ann", "ben", "cyd")])
    assert [lora.number for lora in llm.asked] == [2, 4, 3]
    tensors = [load_file(f"{lora.path}/adapter_model.safetensors") for lora in llm.asked]
    assert tensors[2] and not any(torch.any(tensor) for tensor in tensors[2].values())
    assert any(torch.any(tensor) for tensor in tensors[0].values())


def test_an_engine_that_sleeps_is_woken_once_before_it_samples(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that it shares with its trainer, in name only."""
    monkeypatch.setattr(vllm_options, "sleeps", lambda setting, base, *, beside: beside)
    one = engine({"ann": None})
    assert one.llm.options["enable_sleep_mode"]
    one.rest()
    one.rest()
    one.sample([asked("ann")])
    one.sample([asked("ann")])
    assert one.llm.calls == ["sleep", "wake", "generate", "generate"]
