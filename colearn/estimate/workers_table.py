"""Formats the memory of a host's workers, and the resources that a cluster reserves for them, as a
table for a terminal."""

from __future__ import annotations

from math import ceil, floor

from rich.console import Group
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from .machine import Machine
from .run_estimate import Estimate


def workers_table(estimate: Estimate) -> Group:
    """Return a table with each worker's highest memory peak on each device, and a line on the
    bundles of the placement group."""
    table = Table("worker", "device", "peak memory", "highest in")
    for worker, devices in estimate.workers.items():
        for device, phases in devices.items():
            if phases:
                highest = max(phases, key=lambda phase: phases[phase])
                table.add_row(worker.name, device, decimal(phases[highest]), highest)
    first = next(iter(estimate.workers))
    cpus = "an equal share of the cluster's" if first.cpus is None else f"{first.cpus:g}"
    each = "worker" if first.processes == 1 else "process"
    line = (
        f"placement group: {_processes(estimate)} bundles, one for each {each}, of "
        f"{first.gpus:g} GPUs and {cpus} CPUs"
    )
    return Group(table, Text(line))


def workers_too_large(estimate: Estimate) -> list[str]:
    """Return lines about workers that do not fit the described machine: a line if there are too few
    GPUs, a line for each worker that needs more than its share of a GPU, and a last line with the
    remedy. The remedy is a GPU share with which all workers fit, or another change."""
    machine = estimate.machine
    if machine is None:
        return []
    lines, needed = [], sum(worker.gpus * worker.processes for worker in estimate.workers)
    if needed > machine.count:
        lines.append(
            f"does not fit: {len(estimate.workers)} workers reserve {needed:g} GPUs, and --devices "
            f"has {machine.count}; lower run.host.gpus"
        )
    for worker, devices in estimate.workers.items():
        limit = int(machine.memory * (min(1.0, worker.gpus) or 1.0))
        for device, phases in devices.items():
            if device != "cpu" and phases and max(phases.values()) > limit:
                lines.append(
                    f"does not fit: the worker of {worker.name} needs "
                    f"{decimal(max(phases.values()))} of its {decimal(limit)}"
                )
    return [*lines, _remedy(estimate, machine)] if lines else []


def _remedy(estimate: Estimate, machine: Machine) -> str:
    """States the largest share of a GPU with which all workers fit, or another remedy."""
    share = floor(1000 / ceil(_processes(estimate) / machine.count)) / 1000
    peaks = [
        max(phases.values())
        for devices in estimate.workers.values()
        for device, phases in devices.items()
        if device != "cpu" and phases
    ]
    if max(peaks, default=0) <= int(machine.memory * share):
        return f"proposed: --set run.host.gpus={share:g}"
    return (
        f"no share is proposed: {len(estimate.workers)} workers on {machine.count} GPUs have at "
        f"most {decimal(int(machine.memory * share))} each; lower train.at_once, "
        "evaluation.at_once or train.token_budget, set checkpointing, or run.host: local, for "
        "which settings are proposed"
    )


def _processes(estimate: Estimate) -> int:
    return sum(worker.processes for worker in estimate.workers)
