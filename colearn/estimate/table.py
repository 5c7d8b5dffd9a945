"""An estimate as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from .run import Estimate, Steps


def estimate_tables(found: Estimate) -> Group:
    """Networks, peaks by device and phase, and what one iteration costs."""
    run = found.run
    title = f"{run.config.task.name}, {run.config.algorithm.name}, {len(run.agents)} agents"
    parts: list[Table | Text] = [Text(title), _networks(found)]
    parts += [Text(f"{field}: {reason}") for field, reason in found.missing.items()]
    if found.phases is None:
        parts.append(Text("peak memory: not counted without these models"))
    else:
        parts.append(_phases(found))
    if found.steps is None:
        parts.append(Text("nothing is learned: a run is one evaluation"))
    else:
        parts.append(_steps(found.steps))
    return Group(*parts)


def comparison_table(title: str, found: Mapping[str, Estimate]) -> Group:
    """One row for each entry of a comparison, and below what could not be counted."""
    table = Table("entry", "peak memory", "episodes", "joint actions", "new tokens", title=title)
    for label, one in found.items():
        devices = one.phases or {}
        peak = ", ".join(f"{_size(one.peak(device))} on {device}" for device in devices)
        cells = ["-"] * 3
        if one.steps is not None:
            steps = one.steps
            counts = (steps.episodes, steps.joint_actions, steps.new_tokens)
            cells = [f"{count:,}" for count in counts]
        table.add_row(label, peak or "not counted", *cells)
    notes = {f"{field}: {why}" for one in found.values() for field, why in one.missing.items()}
    caption = Text("counts are those of one iteration, at most; - where nothing is learned")
    return Group(table, caption, *(Text(note) for note in sorted(notes)))


def _networks(found: Estimate) -> Table:
    table = Table("network", "device", "trained", "weights", "gradients", "Adam")
    for network in found.networks:
        cells: Iterable[str] = (
            f"{network.trained:,}",
            _size(network.weights),
            _size(network.gradients),
            _size(network.adam),
        )
        if network.missing is not None:
            cells = ("not here", "-", "-", "-")
        table.add_row(str(network.key), network.device, *cells)
    return table


def _phases(found: Estimate) -> Table:
    assert found.phases is not None and found.caches is not None
    table = Table("device", "phase", "peak memory, one process")
    for device, phases in found.phases.items():
        for phase, size in phases.items():
            table.add_row(device, phase, _size(size))
        if found.caches[device]:
            table.add_row(device, "keys and values in it", _size(found.caches[device]))
        if phases:
            table.add_row(device, "most", _size(found.peak(device)), end_section=True)
    return table


def _steps(steps: Steps) -> Table:
    table = Table("one iteration, at most", "")
    prompts = "tokenizer not here" if steps.prompt_tokens is None else f"{steps.prompt_tokens:,}"
    for name, value in (
        ("episodes", f"{steps.episodes:,}"),
        ("joint actions", f"{steps.joint_actions:,}"),
        ("generations", f"{steps.generations:,}"),
        ("new tokens", f"{steps.new_tokens:,}"),
        ("prompt tokens", prompts),
    ):
        table.add_row(name, value)
    for key, padded in (steps.padded_tokens or {}).items():
        table.add_row(f"padded tokens, {key}", f"{padded:,}")
    return table


def _size(count: int) -> str:
    """Bytes in the largest unit that they fill."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
