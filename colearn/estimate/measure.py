"""Measures the two constants of a device: the rate of products in training passes, and the time of
a launch in decoding."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from colearn.contract import NetworkKey, Sampling, TokenHistory, TokenRequest
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.engines.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.torch_settings import threads
from colearn.rollout.agents import AgentSpec, ChatFormat

from .learning import pass_over
from .ledger import make_fake, rehearsal
from .speaking import GeneratorCall, PlacedEngine, rehearse_call
from .speed import Speed
from .stand_ins import stand_in_tokenizer

ROWS, PROMPT, NEW = 32, 16, 48
"""Number of rows of the measured decoding, and of tokens of each prompt and answer."""
_REPEATS = 3


def measure(device: torch.device) -> Speed:
    """Measure a device, in less than a minute."""
    types = [torch.float32, torch.bfloat16]
    if device.type != "cpu":  # on a CPU, float16 takes minutes
        types.append(torch.float16)
    rates = {str(compute).removeprefix("torch."): _products(device, compute) for compute in types}
    return Speed(products=rates, launch=_launch(device))


def _products(device: torch.device, compute: torch.dtype) -> float:
    """FLOP/s of a training pass over layers of a usual shape."""
    width, vocabulary, rows, length = 2048, 32_768, 8, 1024
    if device.type == "cpu":
        width, vocabulary, rows, length = 512, 8192, 4, 128
    network = Network(_model(device, width, vocabulary, compute))
    span = ActionTokens(node=1, start=length // 2, end=length, before=length // 2 - 1)
    pieces = (Piece(0, length, parent=-1, first_position=0, visible_from=0),)
    micro = tuple(
        Row(tokens=(number, *range(1, length)), pieces=pieces, spans=(span,))
        for number in range(rows)
    )
    seconds = _best(device, lambda: pass_over(network, micro))
    with rehearsal() as ledger:
        make_fake(network, torch.device("cpu"))
        pass_over(network, micro)
    return ledger.products / seconds


def _launch(device: torch.device) -> float:
    """Seconds of a decoding step of a small model, divided by the number of its operators."""
    base = _model(device, 64, 1024, torch.float32)
    sampling = Sampling(max_tokens=NEW)
    spec = AgentSpec(sampling=sampling, chat=ChatFormat(stand_in_tokenizer()))
    engine = TransformersEngine(base, {"a": spec})
    requests = [
        TokenRequest(
            agent="a",
            history=TokenHistory().observe([number] * PROMPT, None),
            sampling=sampling,
            seeds=(number,),
        )
        for number in range(ROWS)
    ]
    with threads(1) if device.type == "cpu" else nullcontext():  # as a run of small models
        seconds = _best(device, lambda: engine.generate(requests))
    agents = ("a",) * ROWS
    call = GeneratorCall(agents, agents, PROMPT, PROMPT, PROMPT + NEW, reserve=0, tokens=NEW)
    placed = PlacedEngine(NetworkKey("actor", "a"), base, "cpu", {"a": spec}, needs=None, held=0)
    with rehearsal() as ledger:
        make_fake(base, torch.device("cpu"))
        rehearsed = rehearse_call(ledger, placed, call)
    return seconds / (rehearsed.prefill.launches + NEW * rehearsed.step.launches)


def _model(device: torch.device, width: int, vocabulary: int, compute: torch.dtype) -> Base:
    """A model of four layers with random weights."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=4,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(), device:
        return Base(LlamaForCausalLM(config), compute).to(device)


def _best(device: torch.device, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several calls, after one more. With one thread on a CPU, processor
    time is measured, which other programs do not change."""
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    taken = []
    for _ in range(1 + _REPEATS):
        started = clock()
        work()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        taken.append(clock() - started)
    return min(taken[1:])
