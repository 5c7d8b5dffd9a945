"""Computes memory and cost of each turn of a rollout: KV caches, prefill and one decoding step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from colearn.config import ResolvedRun
from colearn.contract import EngineNeeds, NetworkKey
from colearn.engines.batch_slab import BLOCK, Slab
from colearn.engines.vllm_options import device_memory
from colearn.models.base import Base
from colearn.models.device_layers import compute_bytes
from colearn.models.packed_products import packed_bytes, worthwhile
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.packed_rows import window_start

from .episodes import Rehearsed
from .ledger import Cost, Ledger
from .machine import Machine

_SAMPLED, _CUT = 16, 36
"""Number of bytes that sampling needs per row and vocabulary entry, in addition to the logits.
These bytes hold the scaled logits and probabilities in float32 and the cumulative sum of the
probabilities in float64. The second number includes the sort for top-k and top-p."""


@dataclass(frozen=True, slots=True)
class GeneratorCall:
    """One generator call for all agents of the generator at one turn."""

    requests: tuple[str, ...]
    """The agent of each extended history."""
    rows: tuple[str, ...]
    """The agent of each sampled action."""
    width: int
    """Maximum number of new tokens of a history, including the pending token."""
    used: int
    """Maximum number of cached positions of a history after the prefill."""
    capacity: int
    """Number of cache slots per history. Unless histories are forked, the number includes the slots
    for the history's action."""
    reserve: int
    """Number of cache slots per row for the row's action if histories are forked; else 0."""
    tokens: int
    """Maximum number of new tokens of an action."""


@dataclass(frozen=True, slots=True)
class CallPass:
    """A rehearsed generator call."""

    peak: int
    """Peak number of bytes that the call adds to the live bytes, with its caches and with copies of
    weights that it needs in another type or memory order."""
    prefill: Cost
    step: Cost
    """Cost of one decoding step."""


def plan_calls(
    speakers: Mapping[str, AgentSpec], played: Sequence[Rehearsed], episodes: int
) -> list[GeneratorCall]:
    """Plan the generator calls of `episodes` items, with histories of the same lengths as in
    `played`. Every item is assumed to have as many turns and branches as the longest one."""
    lengths = [episode.lengths() for episode in played]
    longest = max(range(len(played)), key=lambda number: len(lengths[number]))
    starts = {(number, agent): 0 for number in range(len(played)) for agent in speakers}
    calls = []
    for turn, acts in enumerate(lengths[longest]):
        acting = [agent for agent in acts if agent in speakers]
        if not acting:
            continue
        width = used = cached = 0
        for number, turns in enumerate(lengths):
            for agent in acting:
                if turn >= len(turns) or agent not in turns[turn]:  # a shorter or different order
                    continue
                length, new = turns[turn][agent]
                start = starts[number, agent]
                pending = int(length > new)
                width = max(width, new + pending)
                used = max(used, length - start)
                cached = max(cached, length - start - new - pending)
                starts[number, agent] = window_start(start, length, speakers[agent].window)
        room = max(speakers[agent].sampling.max_tokens for agent in acting)
        requests = _repeated(acting, played[longest].asked, turn, episodes)
        rows = _repeated(acting, played[longest].drawn, turn, episodes)
        forked = len(rows) != len(requests)
        slots = max(cached + width, used if forked else used + room)
        reserve = room if forked else 0
        calls.append(GeneratorCall(requests, rows, width, used, _in_blocks(slots), reserve, room))
    return calls


def _in_blocks(slots: int) -> int:
    return -(-slots // BLOCK) * BLOCK


def _repeated(
    acting: Sequence[str], counts: Mapping[tuple[int, str], int], turn: int, episodes: int
) -> tuple[str, ...]:
    return tuple(agent for agent in acting for _ in range(counts[turn, agent] * episodes))


@dataclass(frozen=True, slots=True)
class PlacedEngine:
    """A generator's engine on a device."""

    key: NetworkKey
    """An actor with the engine's base."""
    base: Base
    device: str
    speakers: Mapping[str, AgentSpec]
    """The agents whose actions the engine generates."""
    needs: EngineNeeds | None
    """Memory needs; None if the engine decodes with the trained model or a copy of it."""
    held: int
    """Bytes that the engine holds in every phase."""


def place_engine(
    run: ResolvedRun,
    key: NetworkKey,
    base: Base,
    device: str,
    speakers: Mapping[str, AgentSpec],
    machine: Machine | None,
) -> PlacedEngine:
    memory = None
    if device != "cpu":
        memory = device_memory(torch.device(device)) if machine is None else machine.memory
    parameters = list(base.causal.parameters())
    computed = sum(weight.numel() for weight in parameters) * base.compute.itemsize
    needs = run.generator.needs(computed, memory=memory)
    copy = sum(weight.nbytes for weight in parameters) if run.generator.copies else 0
    held = copy if needs is None else needs.held
    return PlacedEngine(key, base, device, speakers, needs, held)


def position_bytes(base: Base) -> int:
    """KV cache bytes of one position: 2 x layers x heads x width x bytes."""
    config = base.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    layers = config.num_hidden_layers
    return 2 * layers * heads * head_width(config) * base.compute.itemsize


def head_width(config: Any) -> int:
    """Width of an attention head of a model with this transformers config."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def cache_bytes(base: Base, call: GeneratorCall) -> int:
    """Upper bound on the KV cache bytes of all rows: as if every fork of a history had a copy of
    the history's cache. The engine stores large histories once."""
    slots = _in_blocks(call.used + call.reserve) if call.reserve else call.capacity
    return position_bytes(base) * len(call.rows) * slots


@torch.no_grad()
def rehearse_call(ledger: Ledger, engine: PlacedEngine, call: GeneratorCall) -> CallPass:
    """Rehearse a prefill and one decoding step; call this function inside a rehearsal."""
    base, speakers = engine.base, engine.speakers
    copies = packed_bytes(base.causal) if worthwhile(base.device, base.compute) else 0
    if torch.device(engine.device).type != "cpu":
        copies = compute_bytes(base.causal, base.compute)
    before = ledger.live
    ledger.begin()
    slab = _forward(base, call.requests, call, call.width, speakers)
    prefill, peak = ledger.cost, ledger.peak
    ledger.begin()
    if call.reserve:
        slab = slab.select(_owners(call), call.used, call.used + call.reserve)
    _forward(base, call.rows, call, 1, speakers, slab)
    return CallPass(copies + max(peak, ledger.peak) - before, prefill, ledger.cost)


def _owners(call: GeneratorCall) -> list[int]:
    """Index of each row's history; an agent's rows are divided equally among its histories."""
    owners: list[int] = []
    for agent in dict.fromkeys(call.rows):
        histories = [n for n, requester in enumerate(call.requests) if requester == agent]
        rows = call.rows.count(agent)
        owners += [histories[row * len(histories) // rows] for row in range(rows)]
    return owners


def _forward(
    base: Base,
    rows: Sequence[str],
    call: GeneratorCall,
    width: int,
    speakers: Mapping[str, AgentSpec],
    slab: Slab | None = None,
) -> Slab:
    """Run the prefill (without a slab) or one decoding step (with a slab), then sample."""
    prefill = slab is None
    if slab is None:
        slab = Slab(len(rows), call.capacity, base.device)
    positions = slab.begin(width, call.used if prefill else slab.capacity)
    ids = torch.zeros((len(rows), width), dtype=torch.long, device=base.device)
    visible = torch.zeros((len(rows), width), dtype=torch.long, device=base.device)
    with base.using([speakers[agent].adapter for agent in rows]):
        hidden = base.hidden(
            ids, position_ids=positions, mask=slab.mask(positions, visible), cache=slab
        )
        logits = base.logits(hidden[:, -1])
    del hidden
    each = _CUT if any(_cuts(speakers[agent]) for agent in rows) else _SAMPLED
    scratch = torch.empty(each * logits.numel(), dtype=torch.uint8, device=base.device)
    del scratch
    return slab


def _cuts(spec: AgentSpec) -> bool:
    """Whether the agent samples with top-k or top-p."""
    return spec.sampling.top_k is not None or spec.sampling.top_p < 1
