"""Decoding on a device in name only: what one token of every row costs, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from colearn.config import LoRASettings
from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.engines.batch_slab import Slab
from colearn.engines.step_graphs import StepGraphs
from colearn.engines.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat
from tests.helpers.operator_recorder import OperatorRecorder
from tests.helpers.tiny import byte_tokenizer

from . import costs

DEVICE = "cuda:1"
"""Not the first, which code that names no index would mean."""
LAYERS = 4
"""Enough to tell what each layer costs from what a token costs once."""


def model(layers: int = LAYERS, dtype: torch.dtype = torch.float32) -> Any:
    """Layers of Qwen3-1.7B, each much narrower."""
    config = Qwen3Config(
        vocab_size=len(byte_tokenizer()),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
    )
    torch.manual_seed(0)
    return Qwen3ForCausalLM(config).to(dtype).eval()


def team(
    adapters: int, compute: str, layers: int = LAYERS, **sampling: Any
) -> tuple[Base, dict[str, AgentSpec]]:
    """Two agents on one base: in full weights, with one adapter, or with one each."""
    dtype: torch.dtype = getattr(torch, compute)
    base = Base(model(layers, dtype if adapters else torch.float32), dtype)
    for number in range(adapters):
        if not number:
            base.causal.requires_grad_(False)
        base.add_adapter(f"adapter-{number}", LoRASettings(rank=16, alpha=32.0))
        torch.manual_seed(number)
        for parameter in base.adapter_parameters(f"adapter-{number}").values():
            torch.nn.init.normal_(parameter.detach(), std=0.1)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    names = [f"adapter-{number % adapters}" if adapters else None for number in range(2)]
    specs = {
        agent: AgentSpec(adapter=name, chat=chat, sampling=Sampling(**sampling))
        for agent, name in zip(("ada", "ben"), names, strict=True)
    }
    return base, specs


def request(agent: str, spec: AgentSpec, prompt: Sequence[int], forks: int) -> TokenRequest:
    return TokenRequest(
        agent=agent,
        history=TokenHistory().observe(prompt, None),
        sampling=spec.sampling,
        seeds=tuple(range(forks)),
    )


def requests(specs: Mapping[str, AgentSpec], forks: Sequence[int] = (4, 4)) -> list[TokenRequest]:
    """Two of each agent for so many answers each, in the order of a rollout: the agents of one tree
    after another."""
    return [
        request(agent, spec, [(place * 31 + number * 7) % 250 for place in range(24)], each)
        for number in range(2)
        for (agent, spec), each in zip(specs.items(), forks, strict=True)
    ]


def per_token(
    adapters: int, compute: str, cuda_graphs: bool = False, forks: Sequence[int] = (4, 4)
) -> dict[str, Any]:
    """Costs of decoding one token of every row, by place, and the types of the KV cache. With
    `cuda_graphs`, of a replayed one; its kernels are then launched at once."""
    spent, cached = [], set()
    update = Slab.update

    def noting(slab: Slab, *given: Any, **settings: Any) -> Any:
        result = update(slab, *given, **settings)
        cached.update(str(tensor.dtype) for tensor in result)
        return result

    Slab.update = noting  # type: ignore[method-assign]
    for tokens in (8, 16):
        base, specs = team(adapters, compute, max_tokens=tokens)
        generator = TransformersEngine(base, specs, cuda_graphs=cuda_graphs)
        base.to(DEVICE)
        with costs.counted() as counts:
            answers = generator.generate(requests(specs, forks))
        assert {len(one.action.tokens) for some in answers for one in some} == {tokens}
        spent.append(counts)
    of_eight = spent[1].minus(spent[0])
    each = {
        kind: {where: number / 8 for where, number in sorted(by.items(), key=lambda one: -one[1])}
        for kind, by in of_eight.items()
        if kind != "squares"
    }
    return {**each, "cache": sorted(cached)}


def said(
    adapters: int, compute: str, device: str, move: str = "before", cuda_graphs: bool = True
) -> list[Any]:
    """Tokens and log-probabilities of every row; `move`: whether the base moves to the device
    before or after its generator is built."""
    base, specs = team(adapters, compute, layers=2, max_tokens=12, temperature=0.8)
    if move == "before":
        base.to(device)
    generator = TransformersEngine(base, specs, cuda_graphs=cuda_graphs)
    if move == "after":
        base.to(device)
    answers = generator.generate(requests(specs))
    assert str(base.device) == device
    return [[one.action.tokens, one.action.logprobs] for some in answers for one in some]


def recorded(adapters: int) -> dict[str, Any]:
    """What two engines say, one with graphs, when the first agent's rows end before the other's;
    and the number of recordings and replays."""
    answers = []
    for cuda_graphs in (True, False):
        base, specs = team(adapters, "float32", layers=2, temperature=0.8)
        specs = {
            agent: replace(spec, sampling=replace(spec.sampling, max_tokens=tokens))
            for (agent, spec), tokens in zip(specs.items(), (5, 12), strict=True)
        }
        base.to(DEVICE)
        generator = TransformersEngine(base, specs, cuda_graphs=cuda_graphs)
        drawn = generator.generate(requests(specs))
        answers.append([[one.action.tokens, one.action.logprobs] for some in drawn for one in some])
    counts = [OperatorRecorder.made, OperatorRecorder.replayed]
    return {"graphs": answers[0], "plain": answers[1], "counts": counts}


ORDERS = ("aaaaa", "bbbbb", "aabba", "aaabb", "bbbaa", "babab", "bbbbb", "abbbb", "aaabb")
"""The adapter of each of five rows, by step."""


@torch.inference_mode()
def selected() -> list[float]:
    """Largest gap, by step, between the hidden states of a recorded pass and of the pass itself,
    when rows change their adapters. A recording of five rows computes six."""
    base, _ = team(2, "float32", layers=2)
    base.to(DEVICE)
    graphs = StepGraphs(base)
    slabs = [Slab(5, 64, base.device, room=8) for _ in range(2)]
    visible = torch.zeros((5, 1), dtype=torch.long, device=base.device)
    gaps = []
    for number, order in enumerate(ORDERS):
        adapters = [f"adapter-{'ab'.index(letter)}" for letter in order]
        ids = torch.full((5, 1), 7 + number, device=base.device)
        for slab in slabs:
            slab.lengths = [number] * 5
        found = graphs.hidden(slabs[0], ids, visible, adapters, number + 1)
        positions = slabs[1].begin(1, number + 1)
        mask = slabs[1].mask(positions, visible)
        with base.using(adapters), base.packed():
            expected = base.hidden(ids, position_ids=positions, mask=mask, cache=slabs[1])[:, -1]
        gaps.append(float((found - expected).abs().max()))
    return gaps


def counted_twice() -> dict[str, Any]:
    """Counts of operators whose costs are known by hand."""
    with costs.counted() as counts:
        here = torch.ones(3, 4).to(DEVICE)
        total = (here @ here.T).sum()
        float(total)
        here.half()
    return counts.minus(costs.Costs())
