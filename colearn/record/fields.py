"""The fields of run.json, of a line of metrics.jsonl and episodes.jsonl, and of progress.json."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from colearn.config.renamed import current_metrics
from colearn.contract import Headline


def finite(value: Any) -> float | None:
    """The number, or None for what JSON cannot carry (NaN, infinities) and for no number."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


Number = Annotated[float | None, BeforeValidator(finite)]
Count = Annotated[int, Field(ge=0)]
Metrics = Annotated[dict[str, Number], BeforeValidator(current_metrics)]


class _Fields(BaseModel):
    """Fields that a later version adds are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class Best(_Fields):
    """The evaluation with the best headline metric so far; of equal ones the first."""

    iteration: Count
    value: float


class Progress(BaseModel):
    """How far a run has come; with the seed it fixes everything drawn afterwards."""

    model_config = ConfigDict(extra="forbid")

    iteration: Count = 0
    episodes: Count = 0
    environment_steps: Count = 0
    generations: Count = 0
    generated_tokens: Count = 0
    updates: Count = 0
    wall_seconds: Annotated[float, Field(ge=0)] = 0.0
    """Of training alone."""
    evaluated: int | None = None
    """Iteration of the last evaluation made."""
    best: Best | None = None
    baselines: dict[str, float] = {}
    """What an advantage remembers from update to update."""
    cast: dict[str, float] = {}
    """What a cast remembers of its games."""


class RunRecord(_Fields):
    """run.json: what a run is, how far it is, what it came to."""

    status: Literal["running", "interrupted", "finished"]
    algorithm: str
    task: str
    seed: int
    agents: tuple[str, ...]
    models: dict[str, str]
    """Path by physical model."""
    parameters: dict[str, Count]
    """Trained ones, by model and critic."""
    version: str
    started: str
    """ISO 8601; of the last start where the run was resumed."""
    wall_seconds: Annotated[float, Field(ge=0)]
    peak_memory_bytes: Count
    iterations: Count
    rollouts: Count
    """Episodes rolled out in training."""
    environment_steps: Count
    joint_actions: Count
    """The same number under the name that tables give it."""
    generations: Count = 0
    generated_tokens: Count
    updates: Count
    optimum: float | None = None
    """The task's best possible return, where it is known."""
    headline: Headline = Headline()
    """The metric that the run is judged by."""
    best: Best | None = None
    first: Metrics
    """Metrics of the first evaluation."""
    last: Metrics


class Line(_Fields):
    """A line of metrics.jsonl: an update or an evaluation, and what training had cost by then."""

    kind: Literal["update", "evaluation"]
    iteration: Count
    environment_steps: Count
    generated_tokens: Count
    updates: Count
    wall_seconds: Annotated[float, Field(ge=0)]
    metrics: Metrics
    """None where a value was not finite."""


class RecordedTurn(_Fields):
    """One turn as a reader wants it."""

    reward: Number = None
    observations: dict[str, str] = {}
    actions: dict[str, str] = {}
    picture: dict[str, Any] | None = None

    @property
    def agents(self) -> list[str]:
        """All that were shown something or acted."""
        return list(dict.fromkeys([*self.observations, *self.actions]))


class Episode(_Fields):
    """A line of episodes.jsonl: an episode of an evaluation in full."""

    iteration: Count
    item: str
    value: Annotated[Number, Field(alias="return")] = None
    """Undiscounted return."""
    metrics: dict[str, Number] = {}
    picture: str | None = None
    """The task's rendering of the last state."""
    drawing: str | None = None
    """The episode as SVG."""
    turns: tuple[RecordedTurn, ...] = ()
