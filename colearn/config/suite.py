"""Settings of a suite: several comparisons, one per task, and a table of their results.

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

from colearn.errors import nearest
from colearn.text.names import name_problem

from .settings import Seeds
from .strict_section import Section


class MetricColumn(Section):
    metric: str
    """A metric of the task's evaluation."""
    title: str
    scale: float = Field(default=1.0, gt=0)
    """Factor by which the metric is multiplied; 100 prints a fraction in percent."""
    best: Literal["high", "low"] = "high"


class TaskColumns(Section):
    title: str
    metrics: tuple[MetricColumn, ...]


class SuiteSettings(Section):
    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """File name of the table."""
    title: str
    size: str
    """The key of `sizes` to run; by default its only key."""
    sizes: dict[str, dict[str, str]]
    """Config for each size and task: the name of a shipped config, or a path."""
    tasks: tuple[str, ...] | None = None
    """Tasks to run at the chosen size; None: all."""
    rows: dict[str, str]
    """Maps the labels of `compare.algorithms` that are run, in order, to their printed names."""
    columns: dict[str, TaskColumns]
    """Columns of the table by task, in order; columns for response time and cost come before the
    metrics."""
    seeds: Seeds | None = None
    """Overrides `compare.seeds` of every config."""
    workers: int = Field(default=2, ge=1, le=1024)
    """Number of parallel runs, across tasks."""
    each: dict[str, Any] = Field(default_factory=dict)
    """Overrides for every config; an algorithm's overrides in `compare.algorithms` take
    precedence."""

    @model_validator(mode="before")
    @classmethod
    def _only_size(cls, value: Any) -> Any:
        sizes = value.get("sizes") if isinstance(value, Mapping) else None
        if isinstance(sizes, Mapping) and len(sizes) == 1:
            return {"size": next(iter(sizes)), **value}
        return value

    @model_validator(mode="after")
    def _complete(self) -> SuiteSettings:
        if self.size not in self.sizes:
            raise ValueError(f"size must be one of {', '.join(self.sizes)}, got '{self.size}'")
        for task in self.sizes[self.size]:
            if problem := name_problem(task):
                raise ValueError(f"sizes.{self.size}: {problem}")
            if task not in self.columns:
                raise ValueError(f"columns lacks '{task}', which sizes.{self.size} runs")
        if self.tasks == ():
            raise ValueError("tasks is empty; name one, or leave it out for all")
        for task in self.tasks or ():
            if task not in self.sizes[self.size]:
                hint = nearest(task, self.sizes[self.size])
                raise ValueError(f"tasks: sizes.{self.size} has no '{task}'; {hint}")
        return self

    @property
    def configs(self) -> dict[str, str]:
        """The config of every chosen task at the chosen size, in the order of the columns."""
        configs = self.sizes[self.size]
        chosen = configs if self.tasks is None else self.tasks
        return {task: configs[task] for task in self.columns if task in chosen}

    @property
    def overrides(self) -> dict[str, Any]:
        """The overrides in `each`, by dotted key."""
        return dotted(self.each)


def dotted(section: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Returns values by dotted key; a list or an empty section counts as a value."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            flat |= dotted(value, f"{before}{key}.")
        else:
            flat[f"{before}{key}"] = value
    return flat
