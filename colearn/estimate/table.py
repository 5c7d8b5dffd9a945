"""Formats an estimate as tables for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from .run_estimate import Estimate, IterationBounds


def estimate_tables(estimate: Estimate) -> Group:
    """Return tables of the networks, peaks by device and phase, and the work of an iteration."""
    run = estimate.run
    title = f"{run.config.task.name}, {run.config.algorithm.name}, {len(run.agents)} agents"
    parts: list[Table | Text] = [Text(title), _networks(estimate)]
    parts += [Text(line) for line in _notes(estimate)]
    parts += [_phases(estimate), *map(Text, _verdict(estimate))]
    parts += [Text(line) for line in run.generator.places(run)]
    if estimate.steps is None:
        parts.append(Text("nothing is learned: a run is one evaluation"))
    else:
        parts.append(_steps(estimate.steps, run.token_budget))
        parts.append(Text(time_line(estimate)))
    return Group(*parts)


def time_line(estimate: Estimate) -> str:
    """Return one line with the seconds of an iteration and the hours of the run."""
    seconds = estimate.seconds
    if not estimate.place.rehearses:
        return "no time is known: colearn measure does not measure this generator"
    if estimate.machine is not None:
        return "no time is known: colearn measure measures this machine, not --devices"
    if seconds is None or estimate.hours is None:
        return "no time is known: run colearn measure (a CPU is not measured in float16)"
    iteration = _seconds(seconds.rollout + seconds.update)
    return (
        f"estimate from colearn measure: an iteration takes {iteration} (rollout "
        f"{_seconds(seconds.rollout)}, update {_seconds(seconds.update)}), an evaluation "
        f"{_seconds(seconds.evaluation)}, {estimate.iterations:,} iterations "
        f"{estimate.hours:,.1f} hours"
    )


def _seconds(number: float) -> str:
    return f"{number:,.0f} s" if number >= 100 else f"{number:.3g} s"


def placement_text(estimate: Estimate) -> Text:
    """Format the placement as a command-line argument."""
    setting = f"placement={json.dumps(estimate.placement, ensure_ascii=False)}"
    return Text(f"base models are placed largest first: --set {shlex.quote(setting)}")


def comparison_table(title: str, estimates: Mapping[str, Estimate]) -> Group:
    """Return a table with one row per entry of a comparison, followed by notes and by the entries
    that do not fit."""
    table = Table("entry", "peak memory", "episodes", "joint actions", "new tokens", title=title)
    notes = set()
    for label, estimate in estimates.items():
        devices = estimate.phases
        peak = ", ".join(f"{_peak(estimate, device)} on {device}" for device in devices)
        cells = ["-"] * 3
        if estimate.steps is not None:
            steps = estimate.steps
            counts = (steps.episodes, steps.joint_actions, steps.new_tokens)
            cells = [f"{count:,}" for count in counts]
        table.add_row(label, peak, *cells)
        notes.update(_notes(estimate))
        notes.update(f"{label}: {line}" for line in _unfit(estimate))
        if estimate.placement:
            notes.add(f"{label}: {placement_text(estimate)}")
    caption = Text("counts are those of one iteration, at most; - where nothing is learned")
    return Group(table, caption, *map(Text, sorted(notes)))


def _notes(estimate: Estimate) -> list[str]:
    return [f"{field}: {why}" for field, why in estimate.notes.items()]


def _networks(estimate: Estimate) -> Table:
    table = Table("network", "device", "trained", "weights", "gradients", "Adam")
    for network in estimate.networks:
        cells: Iterable[str] = (
            f"{network.trained:,}",
            decimal(network.weights),
            decimal(network.gradients),
            decimal(network.adam),
        )
        table.add_row(str(network.key), network.device, *cells)
    return table


def _phases(estimate: Estimate) -> Table:
    table = Table("device", "phase", "peak memory, one process")
    for device, phases in estimate.phases.items():
        for phase, size in phases.items():
            table.add_row(device, phase, decimal(size))
        if estimate.caches[device]:
            table.add_row(device, "keys and values in it", decimal(estimate.caches[device]))
        table.add_row(device, "most", _peak(estimate, device), end_section=True)
    return table


def _peak(estimate: Estimate, device: str) -> str:
    peak, capacity = decimal(estimate.peak(device)), estimate.capacity(device)
    return peak if capacity is None else f"{peak} of {decimal(capacity)}"


def _verdict(estimate: Estimate) -> list[str]:
    """Return lines that state whether a described machine has enough memory."""
    if estimate.machine is None:
        return []
    return _unfit(estimate) or ["fits into the memory of --devices"]


def _unfit(estimate: Estimate) -> list[str]:
    """Return a line for each device of a described machine whose memory is too small."""
    lines = []
    for device in estimate.too_small:
        phase = _worst(estimate, device)
        lines.append(
            f"does not fit: {device} needs {_peak(estimate, device)} (in the {phase}); "
            f"{_remedy(phase)}, use LoRA, smaller models or larger devices"
        )
    return lines


def _remedy(phase: str) -> str:
    """The settings that make a phase smaller without a change of the experiment."""
    if phase in ("rollout", "evaluation"):
        section = "train" if phase == "rollout" else "evaluation"
        return f"lower {section}.at_once"
    if phase in ("critic update", "actor update"):
        return "lower train.token_budget, set checkpointing"
    return "set run.learner: {name: deepspeed}"


def _worst(estimate: Estimate, device: str) -> str:
    phases = estimate.phases[device]
    return max(phases, key=lambda phase: phases[phase])


def _steps(steps: IterationBounds, token_budget: int) -> Table:
    table = Table("one iteration, at most", "")
    for name, value in (
        ("episodes", f"{steps.episodes:,}"),
        ("joint actions", f"{steps.joint_actions:,}"),
        ("generations", f"{steps.generations:,}"),
        ("new tokens", f"{steps.new_tokens:,}"),
        ("prompt tokens", f"{steps.prompt_tokens:,}"),
        ("padded tokens of a micro-batch", f"{token_budget:,}"),
    ):
        table.add_row(name, value)
    for key, total in steps.updates.items():
        work = f"{total.tokens:,} in {total.micro_batches:,} micro-batches"
        work = work if total.micro_batches else "in the joint passes above"
        table.add_row(f"padded tokens, {key}", work)
    return table
