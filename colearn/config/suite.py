"""Settings of a suite: several comparisons, each on a task of its own, and the table over them.

name: table1
size: paper
sizes: {paper: {tldr: paper/tldr, ...}, tiny: {tldr: tiny/tldr, ...}}     # configs by task
rows: {collm_cc: CoLLM-CC, ...}                                           # labels as printed
columns: {tldr: {title: TLDR, metrics: [{metric: score, title: Score}]}, ...}
each: {evaluation: {episodes: 4}}                                         # over every config
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from .settings import _Settings


class MetricColumn(_Settings):
    metric: str
    """A metric of the task's evaluation."""
    title: str
    scale: float = Field(default=100.0, gt=0)
    """What the metric is multiplied by; 100 prints a share in percent."""
    best: Literal["high", "low"] = "high"


class TaskColumns(_Settings):
    title: str
    metrics: tuple[MetricColumn, ...]


class SuiteSettings(_Settings):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Of the table's file."""
    title: str
    size: str
    """Which of `sizes` is run."""
    sizes: dict[str, dict[str, str]]
    """By size and task: a shipped config's name or the path of one."""
    rows: dict[str, str]
    """The labels of `compare.algorithms` that are run, with the names to print, in order."""
    columns: dict[str, TaskColumns]
    """By task, in order; response time and cost stand before the metrics."""
    seeds: tuple[int, ...] | None = None
    """Over every config's `compare.seeds`."""
    workers: int = Field(default=2, ge=1)
    """Runs side by side, of whichever task."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads per run; None divides the cores among the workers."""
    each: dict[str, Any] = Field(default_factory=dict)
    """Laid over every config; what its entries in `compare.algorithms` set goes over it."""

    @model_validator(mode="after")
    def _complete(self) -> SuiteSettings:
        if self.size not in self.sizes:
            raise ValueError(f"size must be one of {', '.join(self.sizes)}, got '{self.size}'")
        for task in self.sizes[self.size]:
            if task not in self.columns:
                raise ValueError(f"columns lacks '{task}', which sizes.{self.size} runs")
        return self

    @property
    def configs(self) -> dict[str, str]:
        """The config of every task at the chosen size, in the order of the columns."""
        chosen = self.sizes[self.size]
        return {task: chosen[task] for task in self.columns if task in chosen}

    @property
    def overrides(self) -> dict[str, Any]:
        """`each` as dotted keys."""
        return dotted(self.each)


def dotted(section: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values by dotted key; a list, or an empty section, is a value."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            found |= dotted(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found
