"""Estimates the duration in seconds of each phase of an iteration on accelerators. The inputs are
published rates and the measurements of `benchmarks/gpu.py` on one device.

The time of a pass is the longer of two times: the time of the pass's matrix multiplications at a
fraction of the device's peak rate, and the time that the host needs to launch the kernels one by
one. The time of a decoded token is also the longer of two times: the time of the kernel launches,
and the time that the device needs to read all weights and cached keys and to run many short
kernels. Networks on different devices work concurrently; the host of one process launches the
kernels of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.models.base import Base
from colearn.models.network import Network

from .accelerators import Accelerator
from .network_bytes import NetworkMemory
from .speaking import GeneratorCall, Speaking, head_width, position_bytes
from .work import Totals

PRODUCTS = 0.25
"""Fraction of a device's peak matrix rate that a pass reaches. On one H200 it was 0.25 in an update
of full weights, and 0.19 with adapters and packed trees."""
READS = 0.7
"""Fraction of a device's memory bandwidth that decoding and optimiser steps reach."""
LAUNCH = 22e-6
"""Seconds that the host needs to launch a kernel through transformers' Python code; measured."""
REPLAY = 1.2e-6
"""Seconds that the host needs for each kernel of a recorded graph; measured."""
SHORT = 4.5e-6
"""Seconds of overhead per kernel in decoding, in addition to the time of the counted memory reads.
The value was fitted to one measurement with full weights. It predicts another measurement, with two
adapters, within 2%."""
DECODED = {0: 1017 / 28, 1: 1271 / 28, 2: 1467 / 28}
"""Number of kernels per decoded token and layer. The key is the number of adapters; 2 means two or
more. The kernels were counted in a rehearsal of 28 layers."""
UPDATED = 1350 / 4
"""Number of kernels per micro-batch and layer in the forward and backward pass together: an upper
bound from a rehearsal. A third of them belong to the forward pass."""
CAPTURED = 1.5e-3
"""Seconds of a vLLM step in addition to the device's work: the scheduler and the launch of a
captured graph."""
LINK = 0.7
"""Fraction of the link's rate that collectives reach."""
PCIE = 25e9
"""Transfer rate between a device and the host, in bytes per second."""
HOST = 150e9
"""Bandwidth of the host's memory in bytes per second, for the steps of an offloaded optimiser."""
FILES = 1e9
"""Rate in bytes per second at which weights are written to files and read from files."""
_STEPPED = 28
"""Number of bytes per weight that an AdamW step reads or writes: the step reads and writes the
weight and both moments, and only reads the gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Duration in seconds of each phase of an iteration, and of one evaluation."""

    rollout: float
    scoring: float
    """Passes without gradient, for old and reference log-probabilities and for values."""
    update: float
    transfer: float
    """Transfers of weights to engines that hold a separate copy."""
    evaluation: float

    @property
    def iteration(self) -> float:
        return self.rollout + self.scoring + self.update + self.transfer


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that determine the time of a model's passes."""

    layers: int
    body: int
    """Number of weights that multiply every token: all except embeddings, head and adapters."""
    head: int
    weights: int
    """Bytes of all weights that are read to decode a token, in the compute type."""
    position: int
    """Bytes of the cached keys and values per position."""
    pair: int
    """Attention FLOPs per pair of positions."""
    rate: float
    """FLOP/s of the device in the compute type."""

    @classmethod
    def of(cls, base: Base, card: Accelerator, *, tf32: bool = True) -> Sizes:
        config = base.config
        words = base.causal.get_input_embeddings().weight
        head = base.causal.get_output_embeddings()
        embedding_ids = {id(words), id(getattr(head, "weight", words))}
        named = base.causal.named_parameters()
        single = card.tf32 if tf32 else card.single
        body = sum(
            p.numel() for name, p in named if id(p) not in embedding_ids and ".lora_" not in name
        )
        return cls(
            layers=config.num_hidden_layers,
            body=body,
            head=config.vocab_size * config.hidden_size,
            weights=(body + config.vocab_size * config.hidden_size) * base.compute.itemsize,
            position=position_bytes(base),
            pair=4 * config.num_attention_heads * head_width(config) * config.num_hidden_layers,
            rate=card.half if base.compute != torch.float32 else single,
        )

    def products(self, tokens: float, pairs: float, scored: float) -> float:
        """Seconds of a forward pass's matrix multiplications. Half of the position pairs `pairs`
        are masked."""
        flops = 2 * self.body * tokens + self.pair * pairs / 2 + 2 * self.head * scored
        return flops / (PRODUCTS * self.rate)


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Time in seconds of one network or engine: the time of the device's work, and the time of the
    host's kernel launches."""

    device: str
    worked: float
    launched: float


def together(spent: Iterable[TimeSpent], *, one_host: bool) -> float:
    """Return the time in seconds that networks take when different devices work concurrently.
    Networks on the same device take turns."""
    by_device: defaultdict[str, float] = defaultdict(float)
    launched = 0.0
    for part in spent:
        by_device[part.device] += max(part.worked, part.launched)
        launched += part.launched
    longest = max(by_device.values(), default=0.0)
    return max(longest, launched) if one_host else longest


@dataclass(frozen=True)
class Clock:
    """Estimates the time that one process of a run takes on devices of one kind."""

    run: ResolvedRun
    networks: Mapping[NetworkKey, Network]
    memory: Mapping[NetworkKey, NetworkMemory]
    card: Accelerator
    processes: int

    def seconds(
        self,
        totals: Mapping[NetworkKey, Totals],
        speaking: Mapping[str, Sequence[Speaking]],
        waves: Mapping[str, int],
    ) -> Seconds:
        """Estimate the time of each phase. totals: sums over all processes. speaking: the generator
        calls of one wave of episodes in each phase. waves: the number of consecutive waves in each
        phase."""
        rollout = self._speak(speaking.get("rollout", ())) * waves.get("rollout", 0)
        played = self._speak(speaking.get("evaluation", ())) * waves.get("evaluation", 0)
        transfer = self._transfer(speaking.get("rollout", ()))
        return Seconds(
            rollout=rollout,
            scoring=self._scoring(totals),
            update=self._update(totals),
            transfer=transfer,
            evaluation=played,
        )

    def _sizes(self, key: NetworkKey) -> Sizes:
        return self._sizes_of(self.networks[key].base)

    def _sizes_of(self, base: Base) -> Sizes:
        return Sizes.of(base, self.card, tf32=self.run.config.run.tf32)

    @property
    def _one_host(self) -> bool:
        return not self.run.host.workers(self.run)

    def _speak(self, speaking: Sequence[Speaking]) -> float:
        turns: defaultdict[int, list[TimeSpent]] = defaultdict(list)
        for engine in speaking:
            for call in engine.calls:
                turns[call.turn].append(self._call(engine, call))
        return sum(together(spent, one_host=self._one_host) for spent in turns.values())

    def _call(self, engine: Speaking, call: GeneratorCall) -> TimeSpent:
        sizes, needs = self._sizes_of(engine.base), engine.engine.needs
        rows, histories = len(call.rows), len(call.requests)
        prefill_tokens = histories * call.width
        worked = sizes.products(prefill_tokens, 2 * prefill_tokens * call.used, histories)
        positions = call.used + call.tokens / 2
        if needs is None:
            each = self._token(sizes, rows, positions)
            kernels = DECODED[min(2, engine.adapters)] * sizes.layers
            launch = REPLAY if self.run.generator.replays else LAUNCH
            decoded = call.tokens * max(each + kernels * SHORT, kernels * launch)
            prefilled = max(worked, kernels * LAUNCH)
            return TimeSpent(
                engine.engine.device,
                prefilled + decoded,
                kernels * LAUNCH + call.tokens * kernels * launch,
            )
        fit = rows
        if needs.cache is not None:
            fit = max(1, needs.cache // (sizes.position * (call.used + call.tokens)))
        at_once = min(rows, needs.rows, fit)
        each = CAPTURED + self._token(sizes, at_once, positions)
        place = engine.engine.device if needs.apart else "one after another"
        return TimeSpent(place, worked + rows / at_once * call.tokens * each, 0.0)

    def _token(self, sizes: Sizes, rows: int, positions: float) -> float:
        """Seconds that the device needs to decode one token of every row."""
        read_bytes = sizes.weights + rows * positions * sizes.position
        return max(
            read_bytes / (READS * self.card.bandwidth),
            sizes.products(rows, 2 * rows * positions, rows),
        )

    def _scoring(self, totals: Mapping[NetworkKey, Totals]) -> float:
        loss = self.run.parts.loss
        actors: list[TimeSpent] = []
        references: list[TimeSpent] = []
        critics: list[TimeSpent] = []
        for key, total in totals.items():
            forward = self._forward(key, key, total)
            if key.kind == "critic":
                critics.append(forward)
                continue
            if total.steps > 1 and loss.old_logprobs == "recompute":
                actors.append(forward)
            if self.run.heads:
                critics.append(forward)
            if loss.needs_reference:
                reference = NetworkKey("reference", key.model)
                references.append(
                    self._forward(reference if reference in self.networks else key, key, total)
                )
        return sum(
            together(spent, one_host=self._one_host) for spent in (actors, references, critics)
        )

    def _forward(self, network: NetworkKey, learner: NetworkKey, total: Totals) -> TimeSpent:
        """Time that a network needs for one pass without gradient over the rows that a learner uses
        in one epoch."""
        sizes, share = self._sizes(network), total.epochs * self.processes
        scored = 0 if learner.kind == "critic" else total.scored
        return TimeSpent(
            self.memory[network].device,
            sizes.products(total.tokens, total.pairs, scored) / share,
            total.micro_batches / share * sizes.layers * UPDATED / 3 * LAUNCH,
        )

    def _update(self, totals: Mapping[NetworkKey, Totals]) -> float:
        """Total time in seconds of the critics' and the actors' passes and optimiser steps."""
        spent: dict[str, list[TimeSpent]] = {"critic": [], "actor": []}
        for key, total in totals.items():
            spent[key.kind].append(self._learn(key, total))
        return sum(together(times, one_host=self._one_host) for times in spent.values())

    def _learn(self, key: NetworkKey, total: Totals) -> TimeSpent:
        sizes, memory, settings = self._sizes(key), self.memory[key], self.run.learners[key]
        scored = 0 if key.kind == "critic" else total.scored
        # the backward pass multiplies once for activations, and once for weights that are trained
        passes = (3 if settings.lora is None else 2) + settings.checkpointing
        worked = passes * sizes.products(total.tokens, total.pairs, scored) / self.processes
        micro = total.micro_batches / self.processes
        factor = UPDATED * (1 + settings.checkpointing / 3)
        launched = micro * sizes.layers * factor * LAUNCH
        return TimeSpent(
            memory.device, worked + self._exchanged(memory, micro, total.steps), launched
        )

    def _exchanged(self, memory: NetworkMemory, micro: float, steps: int) -> float:
        """Time in seconds of the optimiser steps, including the communication between processes."""
        footprint, weight_bytes = memory.kept, 4 * memory.trained
        divided, offloads = footprint.master > 0 or footprint.offloaded > 0, footprint.offloaded > 0
        owners = self.processes if divided else 1
        step = _STEPPED * memory.trained / owners / (READS * self.card.bandwidth)
        if offloads:  # all processes step in the memory of one host
            step = _STEPPED * memory.trained / HOST + 2 * weight_bytes / owners / PCIE
        if self.processes == 1:
            return steps * step
        one_way = weight_bytes * (1 - 1 / self.processes) / (LINK * self.card.link)
        if not divided:
            return steps * (step + 2 * one_way)
        gathered = 2 * micro if footprint.updating is not None else steps
        return steps * step + (micro + gathered) * one_way

    def _transfer(self, speaking: Sequence[Speaking]) -> float:
        spent = []
        for speaker in speaking:
            needs = speaker.engine.needs
            if needs is None:
                continue
            trained = [
                self.memory[key].trained * speaker.base.compute.itemsize
                for key in self.run.learners
                if key.kind == "actor" and self.networks[key].base is speaker.base
            ]
            rate = FILES / 2 if needs.apart else READS * self.card.bandwidth / 2
            spent.append(TimeSpent(speaker.engine.device, sum(trained) / rate, 0.0))
        return together(spent, one_host=self._one_host)
