"""Formats an estimate as tables for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from .duration import Seconds
from .machine import Machine, known_devices
from .proposal import Proposal
from .run_estimate import Estimate, IterationBounds
from .workers_table import workers_table, workers_too_large


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
            parts.append(workers_table(estimate))
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
        f"estimate, not measured: an iteration takes {_seconds(seconds.iteration)} "
        f"({_by_phase(seconds)}), an evaluation {_seconds(seconds.evaluation)}, "
        f"{estimate.iterations:,} iterations {estimate.hours:,.1f} hours"
    )


def _by_phase(seconds: Seconds) -> str:
    return (
        f"rollout {_seconds(seconds.rollout)}, scoring {_seconds(seconds.scoring)}, update "
        f"{_seconds(seconds.update)}, weights to engines {_seconds(seconds.transfer)}"
    )


def _seconds(number: float) -> str:
    return f"{number:,.0f} s" if number >= 100 else f"{number:.3g} s"


def idle_line(proposal: Proposal, machine: Machine) -> str | None:
    """States why more than half of the devices are idle; None if they are not."""
    idle = machine.count - proposal.devices
    if 2 * idle <= machine.count:
        return None
    larger = [
        candidate
        for candidate in proposal.others
        if candidate.fits and candidate.devices > proposal.devices
    ]
    if not larger:
        return f"{idle} of {machine.count} devices are idle: no layout that uses more of them fits"
    nearest = min(larger, key=lambda candidate: candidate.iteration)
    assert nearest.estimate.seconds is not None
    return (
        f"{idle} of {machine.count} devices are idle: {nearest.layout} take "
        f"{_seconds(nearest.iteration)} an iteration ({_by_phase(nearest.estimate.seconds)})"
    )


def proposal_text(proposal: Proposal) -> Text:
    """Format the proposed settings as command-line arguments, followed by the peak of each device
    and whether this peak fits the device."""
    estimate = proposal.estimate
    lines = ["proposed:"]
    if estimate.processes > 1:
        lines = [
            f"proposed, in {estimate.processes} processes, one for each device (torchrun "
            f"--nproc_per_node {estimate.processes} -m colearn train ...):"
        ]
    for key, value in proposal.changes.items():
        setting = f"{key}={json.dumps(value, ensure_ascii=False)}"
        lines.append(f"  --set {shlex.quote(setting)}")
    for device, phases in (estimate.phases or {}).items():
        if phases and device != "cpu":
            peak, phase = _peak(estimate, device), _worst(estimate, device)
            lines.append(f"  {device}: at most {peak}, in the {phase}")
    lines.append(
        "it fits"
        if proposal.fits
        else f"it does not fit on {', '.join(estimate.too_small)}: use LoRA, smaller models, "
        "shorter answers (agents.*.sampling.max_tokens) or larger devices"
    )
    if estimate.seconds is not None and proposal.fits and estimate.machine is not None:
        lines.append(time_line(estimate))
        lines += [
            f"  not proposed: {candidate.layout}, {_seconds(candidate.iteration)} an iteration"
            for candidate in proposal.others
            if candidate.fits
        ]
        if (idle := idle_line(proposal, estimate.machine)) is not None:
            lines.append(idle)
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
    if estimate.machine is None or estimate.phases is None:
        return []
    if estimate.workers:
        lines = workers_too_large(estimate)
        return lines or (["workers fit into the memory of --devices"] if good else [])
    lines = [
        f"does not fit: {device} needs {_peak(estimate, device)} ({_worst(estimate, device)})"
        for device in estimate.too_small
    ]
    return lines or (["fits into the memory of --devices"] if good else [])


def _worst(estimate: Estimate, device: str) -> str:
    assert estimate.phases is not None
    phases = estimate.phases[device]
    return max(phases, key=lambda phase: phases[phase])


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
