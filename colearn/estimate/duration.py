"""Estimates the seconds of an iteration from two constants that were measured on one H200: the
fraction of the peak matrix rate that passes reach, and the time of a kernel in decoding.

A pass takes the time of its matrix products. A decoded token takes the time of its kernels, which
are short. Engines and networks on one device work in turn, and those on different devices
concurrently. Neither the transfer of weights nor rewards and task steps are counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from colearn.contract import NetworkKey
from colearn.models.base import Base

from .accelerators import Accelerator
from .phases import Phases
from .speaking import head_width
from .work import Totals

PRODUCTS = 0.25
"""Fraction of a device's peak matrix rate that a pass reaches. On one H200 it was 0.25 in an update
of full weights, and 0.19 with adapters and packed trees."""
KERNEL = 7.1e-6
"""Seconds per kernel of a decoded token, with its memory reads. On one H200, 64 rows of a model
with 28 layers and 1,017 kernels a token took 7.19 ms."""
DECODED = {0: 1017 / 28, 1: 1271 / 28, 2: 1467 / 28}
"""Number of kernels per decoded token and layer. The key is the number of adapters; 2 means two or
more. The kernels were counted in a rehearsal of 28 layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Duration in seconds of an iteration's rollout and update, and of one evaluation."""

    rollout: float
    update: float
    """Passes and optimiser steps, with the passes for old and reference log-probabilities."""
    evaluation: float


def spoken(phases: Phases, phase: str, card: Accelerator) -> float:
    """Seconds of the generator calls of one wave of a phase's episodes."""
    by_device: defaultdict[str, float] = defaultdict(float)
    for engine, calls in phases.speaking.get(phase, ()):
        kernels = DECODED[min(2, engine.adapters)] * engine.base.config.num_hidden_layers
        for call in calls:
            tokens = len(call.requests) * call.width
            pairs, scored = tokens * call.used, len(call.requests)
            prefill = _products(engine.base, tokens, pairs, scored, card)
            by_device[engine.device] += prefill + call.tokens * kernels * KERNEL
    return max(by_device.values(), default=0.0)


def learned(
    phases: Phases, totals: Mapping[NetworkKey, Totals], card: Accelerator, processes: int
) -> float:
    """Seconds of the update of the networks of `phases`, whose `totals` are divided among
    `processes` processes."""
    loss = phases.run.parts.loss
    by_device: defaultdict[str, float] = defaultdict(float)
    for key in totals.keys() & phases.networks.keys():
        settings, total = phases.run.learners[key], totals[key]
        # forward, backward for activations, and backward for weights that are trained
        passes = 3.0 if settings.lora is None else 2.0
        passes += settings.checkpointing
        if key.kind == "actor":
            again = total.steps > 1 and loss.old_logprobs == "recompute"
            passes += (again + loss.needs_reference + loss.needs_teacher) / total.epochs
        scored = total.scored if key.kind == "actor" else 0
        base = phases.networks[key].base
        seconds = _products(base, total.tokens, total.pairs / 2, scored, card)
        by_device[phases.memory[key].device] += passes * seconds / processes
    return max(by_device.values(), default=0.0)


def _products(base: Base, tokens: float, pairs: float, scored: float, card: Accelerator) -> float:
    """Seconds of a forward pass's matrix products over `tokens` tokens with `pairs` pairs of
    positions that attend; `scored` tokens pass through the output head."""
    config = base.config
    outside = [base.causal.get_input_embeddings(), base.causal.get_output_embeddings()]
    heads = {id(getattr(module, "weight", None)) for module in outside}
    named = base.causal.named_parameters()
    body = sum(p.numel() for name, p in named if id(p) not in heads and ".lora_" not in name)
    pair = 4 * config.num_attention_heads * head_width(config) * config.num_hidden_layers
    head = config.vocab_size * config.hidden_size
    # products in float32 have half of the rate, as TF32
    rate = card.half / (2 if base.compute == torch.float32 else 1)
    return (2 * body * tokens + pair * pairs + 2 * head * scored) / (PRODUCTS * rate)
