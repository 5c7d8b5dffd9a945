"""Computes the seconds of an iteration: products / rate + launches x seconds of a launch.

The rehearsed passes give products and launches, and `colearn measure` gives the two constants.
Engines and networks on one device work in turn, and those on different devices concurrently. Not
counted are optimiser steps, rewards, task steps and the transfer of weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from colearn.contract import NetworkKey
from colearn.models.base import Base

from .learning import padded
from .ledger import Cost
from .phases import Phases
from .speed import Speed
from .work import Totals

Speeds = Mapping[str, Speed]
"""The speed of each device of a run."""

FEW = 16
"""Number of rows below which a decoding step takes no less time, since its products wait for the
weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Duration in seconds of an iteration's rollout and update, and of one evaluation."""

    rollout: float
    update: float
    """Passes over the training rows, with those for old and reference log-probabilities."""
    evaluation: float


def spoken(phases: Phases, phase: str, speeds: Speeds) -> float:
    """Seconds of the generator calls of one wave of a phase's episodes."""
    by_device: defaultdict[str, float] = defaultdict(float)
    for speaking in phases.speaking.get(phase, ()):
        engine, calls = speaking.engine, speaking.calls
        prefill, step = speaking.first.prefill, speaking.last.step
        read, rows = len(calls[0].requests) * calls[0].width, len(calls[-1].rows)
        for call in calls:
            share = len(call.requests) * call.width / read
            begun = Cost(prefill.launches, prefill.products * share)
            decoded = Cost(step.launches, step.products * max(FEW, len(call.rows)) / rows)
            speed = speeds[engine.device]
            by_device[engine.device] += _seconds(begun, engine.base, speed)
            by_device[engine.device] += call.tokens * _seconds(decoded, engine.base, speed)
    return max(by_device.values(), default=0.0)


def learned(
    phases: Phases, totals: Mapping[NetworkKey, Totals], speeds: Speeds, processes: int
) -> float:
    """Seconds of the update of the networks of `phases`, whose `totals` are divided among
    `processes` processes."""
    loss = phases.run.parts.loss
    by_device: defaultdict[str, float] = defaultdict(float)
    for key, (one, work) in phases.updates.items():
        total, device = totals[key], phases.memory[key].device
        cost = Cost(
            one.cost.launches * total.micro_batches,
            one.cost.products * total.tokens / padded(work.largest),
        )
        # passes without a gradient, in one of the epochs; each is a third of a training pass
        again = 1.0  # values of the critic
        if key.kind == "actor":
            recomputed = total.steps > 1 and loss.old_logprobs == "recompute"
            taught = loss.needs_teacher and key.model not in phases.run.served_teachers
            again = float(recomputed + loss.needs_reference + taught)
        seconds = _seconds(cost, phases.networks[key].base, speeds[device])
        by_device[device] += seconds * (1 + again / 3 / total.epochs) / processes
    return max(by_device.values(), default=0.0)


def _seconds(cost: Cost, base: Base, speed: Speed) -> float:
    return cost.products / speed.products[base.compute_name] + cost.launches * speed.launch
