"""Formats an estimate as tables for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from .machine import Machine, known_devices
from .propose import Proposal
from .run_estimate import Estimate, IterationBounds


def estimate_tables(estimate: Estimate) -> Group:
    """Return tables of the networks, peaks by device and phase, and the work of an iteration."""
    run = estimate.run
    title = f"{run.config.task.name}, {run.config.algorithm.name}, {len(run.agents)} agents"
    parts: list[Table | Text | Group] = [Text(title), _networks(estimate)]
    if run.config.critic is not None and run.config.critic.item_baseline and run.value_models:
        parts.append(Text("critic.baseline: item, means by item and turn; none: the network alone"))
    notes = {**estimate.missing, **estimate.assumed, **estimate.warnings}
    parts += [Text(f"{field}: {reason}") for field, reason in notes.items()]
    if estimate.phases is None:
        parts.append(Text("peak memory: not counted without these models"))
    else:
        parts.append(_phases(estimate))
        if estimate.workers:
            parts += [_workers(estimate), Text(_bundles(estimate))]
        parts += [Text(line) for line in _verdict(estimate)]
    parts += [Text(line) for line in run.generator.places(run)]
    if estimate.steps is None:
        parts.append(Text("nothing is learned: a run is one evaluation"))
    else:
        parts.append(_steps(estimate.steps, run.token_budget))
    if estimate.steps is not None and estimate.machine is not None:
        parts.append(Text(time_line(estimate)))
    return Group(*parts)


def time_line(estimate: Estimate) -> str:
    """Return one line with the seconds of an iteration by phase and the hours of the run."""
    machine, seconds = estimate.machine, estimate.seconds
    assert machine is not None
    if machine.card is None:
        return f"no time: the rates of these devices are not known; known are {known_devices()}"
    if seconds is None or estimate.hours is None:
        return "no time: not counted without these models"
    return (
        f"estimate, not measured: an iteration takes {_seconds(seconds.iteration)} (rollout "
        f"{_seconds(seconds.rollout)}, update {_seconds(seconds.update)}), an evaluation "
        f"{_seconds(seconds.evaluation)}, {estimate.iterations:,} iterations "
        f"{estimate.hours:,.1f} hours"
    )


def _seconds(number: float) -> str:
    return f"{number:,.0f} s" if number >= 100 else f"{number:.3g} s"


def proposal_text(proposal: Proposal) -> Text:
    """Format a placement as command-line arguments, followed by the peak of each device and whether
    this peak fits the device."""
    estimate = proposal.estimate
    lines = ["proposed:"]
    if not proposal.placement:
        lines = [
            f"proposed, in {estimate.processes} processes, one for each device (torchrun "
            f"--nproc_per_node {estimate.processes} -m colearn train ...):"
        ]
    else:
        setting = f"placement={json.dumps(proposal.placement, ensure_ascii=False)}"
        lines.append(f"  --set {shlex.quote(setting)}")
    for device, phases in (estimate.phases or {}).items():
        if phases and device != "cpu":
            lines.append(f"  {device}: at most {_peak(estimate, device)}, in the {_worst(phases)}")
    lines += _verdict(estimate)
    if not estimate.too_small:
        lines.append(time_line(estimate))
    return Text("\n".join(lines))


def comparison_table(title: str, estimates: Mapping[str, Estimate]) -> Group:
    """Return a table with one row per entry of a comparison, followed by the fields that could not
    be estimated."""
    table = Table("entry", "peak memory", "episodes", "joint actions", "new tokens", title=title)
    for label, estimate in estimates.items():
        devices = estimate.phases or {}
        peak = ", ".join(f"{_peak(estimate, device)} on {device}" for device in devices)
        cells = ["-"] * 3
        if estimate.steps is not None:
            steps = estimate.steps
            counts = (steps.episodes, steps.joint_actions, steps.new_tokens)
            cells = [f"{count:,}" for count in counts]
        table.add_row(label, peak or "not counted", *cells)
    notes = {
        f"{field}: {why}"
        for estimate in estimates.values()
        for field, why in {**estimate.missing, **estimate.assumed, **estimate.warnings}.items()
    }
    notes |= {
        f"{label}: {line}"
        for label, estimate in estimates.items()
        for line in _verdict(estimate, good=False)
    }
    caption = Text("counts are those of one iteration, at most; - where nothing is learned")
    return Group(table, caption, *(Text(note) for note in sorted(notes)))


def _networks(estimate: Estimate) -> Table:
    table = Table("network", "device", "trained", "weights", "gradients", "Adam")
    for network in estimate.networks:
        cells: Iterable[str] = (
            f"{network.trained:,}",
            decimal(network.weights),
            decimal(network.gradients),
            decimal(network.adam),
        )
        if network.missing is not None:
            cells = ("not here", "-", "-", "-")
        table.add_row(str(network.key), network.device, *cells)
    return table


def _phases(estimate: Estimate) -> Table:
    assert estimate.phases is not None and estimate.caches is not None
    table = Table("device", "phase", "peak memory, one process")
    for device, phases in estimate.phases.items():
        for phase, size in phases.items():
            table.add_row(device, phase, decimal(size))
        if estimate.caches[device]:
            table.add_row(device, "keys and values in it", decimal(estimate.caches[device]))
        if phases:
            table.add_row(device, "most", _peak(estimate, device), end_section=True)
    return table


def _peak(estimate: Estimate, device: str) -> str:
    capacity = estimate.capacity(device)
    peak = decimal(estimate.peak(device))
    return peak if capacity is None else f"{peak} of {decimal(capacity)}"


def _verdict(estimate: Estimate, *, good: bool = True) -> list[str]:
    """Return lines that state whether a described machine has enough memory. If it has, there is a
    line only if `good` is true."""
    machine = estimate.machine
    if machine is None or estimate.phases is None:
        return []
    lines = [
        f"does not fit: {device} needs {_peak(estimate, device)} (in the {phase}); "
        f"{_remedy(phase)}, use LoRA, smaller models or larger devices"
        for device in estimate.too_small
        if (phase := _worst(estimate.phases[device]))
    ]
    if estimate.workers:
        lines = _too_large(estimate, machine)
    what = "workers fit" if estimate.workers else "fits"
    return lines or ([f"{what} into the memory of --devices"] if good else [])


def _remedy(phase: str) -> str:
    """The settings that make a phase smaller without a change of the experiment."""
    if phase in ("rollout", "evaluation"):
        section = "train" if phase == "rollout" else "evaluation"
        return f"lower {section}.at_once"
    if phase in ("critic update", "actor update"):
        return "lower train.token_budget, set checkpointing"
    return "set run.learner: {name: deepspeed}"


def _worst(phases: Mapping[str, int]) -> str:
    return max(phases, key=lambda phase: phases[phase])


def _workers(estimate: Estimate) -> Table:
    """Return a table with each worker's highest memory peak on each device."""
    table = Table("worker", "device", "peak memory", "highest in")
    for worker, devices in estimate.workers.items():
        for device, phases in devices.items():
            if phases:
                worst = _worst(phases)
                table.add_row(worker.name, device, decimal(phases[worst]), worst)
    return table


def _bundles(estimate: Estimate) -> str:
    """Return a line on the bundles of a cluster's placement group."""
    first = next(iter(estimate.workers))
    cpus = "an equal share of the cluster's" if first.cpus is None else f"{first.cpus:g}"
    each = "worker" if first.processes == 1 else "process"
    count = sum(worker.processes for worker in estimate.workers)
    return (
        f"placement group: {count} bundles, one for each {each}, of {first.gpus:g} GPUs and "
        f"{cpus} CPUs"
    )


def _too_large(estimate: Estimate, machine: Machine) -> list[str]:
    """Return a line if workers reserve more GPUs than the machine has, and a line for each worker
    that needs more than its share of a GPU."""
    lines = []
    needed = sum(worker.gpus * worker.processes for worker in estimate.workers)
    if needed > machine.count:
        lines.append(
            f"does not fit: {len(estimate.workers)} workers reserve {needed:g} GPUs, and --devices "
            f"has {machine.count}; lower run.host.gpus"
        )
    for worker, devices in estimate.workers.items():
        limit = int(machine.memory * (min(1.0, worker.gpus) or 1.0))
        for device, phases in devices.items():
            if device != "cpu" and phases and (peak := max(phases.values())) > limit:
                lines.append(
                    f"does not fit: the worker of {worker.name} needs {decimal(peak)} of its "
                    f"{decimal(limit)}; raise run.host.gpus or {_remedy(_worst(phases))}"
                )
    return lines


def _steps(steps: IterationBounds, token_budget: int) -> Table:
    table = Table("one iteration, at most", "")
    prompts = "tokenizer not here" if steps.prompt_tokens is None else f"{steps.prompt_tokens:,}"
    for name, value in (
        ("episodes", f"{steps.episodes:,}"),
        ("joint actions", f"{steps.joint_actions:,}"),
        ("generations", f"{steps.generations:,}"),
        ("new tokens", f"{steps.new_tokens:,}"),
        ("prompt tokens", prompts),
        ("padded tokens of a micro-batch", f"{token_budget:,}"),
    ):
        table.add_row(name, value)
    for key, padded in (steps.padded_tokens or {}).items():
        table.add_row(f"padded tokens, {key}", f"{padded:,}")
    return table
