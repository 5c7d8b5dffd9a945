"""Defines the fields of run.json, of progress.json, and of the lines of a run's .jsonl files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

import colearn
from colearn.contract import Headline

from .limits import LARGEST, MOST


def finite(value: Any) -> float | None:
    """The value as a float; None for NaN, numbers beyond `LARGEST`, and anything that is not a
    number."""
    if isinstance(value, int | float) and abs(value) <= LARGEST:
        return float(value)
    return None


Number = Annotated[float | None, BeforeValidator(finite)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Seconds = Annotated[float, Field(ge=0, le=LARGEST)]
Bounded = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Metrics = dict[str, Number]


def _current(version: Any) -> str:
    if version != colearn.__version__:
        raise ValueError(f"was recorded by colearn {version}, and this is {colearn.__version__}")
    return str(version)


Version = Annotated[str, BeforeValidator(_current)]
"""The version of colearn that wrote a record. Records of another version are not read."""


class RecordFields(BaseModel):
    """Base class of all records. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class Best(RecordFields):
    """The evaluation with the best headline metric so far. If several evaluations are equal, the
    first counts."""

    iteration: Count
    value: float


class Progress(BaseModel):
    """Progress of a run; together with the seed it determines all later random draws."""

    model_config = ConfigDict(extra="forbid")

    iteration: Count = 0
    episodes: Count = 0
    environment_steps: Count = 0
    generations: Count = 0
    generated_tokens: Count = 0
    updates: Count = 0
    """Number of optimiser steps; if models have schedules of their own, of the model with the
    most."""
    wall_seconds: Seconds = 0.0
    """Seconds spent training, without evaluations."""
    evaluated: int | None = None
    """Iteration of the last evaluation."""
    best: Best | None = None
    baselines: dict[str, float] = {}
    """State of the advantage estimator."""
    cast: dict[str, float] = {}
    """State of the cast."""
    item_means: dict[str, tuple[float, float]] = {}
    """Mean return for each item and turn. A critic is compared with this baseline."""
    changes: list[str] = []
    """Files that changed before the run was resumed, as `field: file` (`run.accept_changes`)."""


class RunRecord(RecordFields):
    """run.json: a run's description, progress and results."""

    status: Literal["running", "interrupted", "finished"]
    stopped: str | None = None
    """The reason why a callback ended the run before the run had used its budget."""
    algorithm: str
    task: str
    seed: int
    agents: tuple[str, ...]
    models: dict[str, str]
    """Path of each physical model."""
    parameters: dict[str, Count]
    """Number of trained parameters of each model and critic."""
    version: Version
    started: str
    """Time of the last start or resumption, ISO 8601."""
    wall_seconds: Seconds
    peak_memory_bytes: Count
    iterations: Count
    rollouts: Count
    """Number of episodes that were rolled out in training."""
    environment_steps: Count
    joint_actions: Count
    """Number of environment steps, equal to `environment_steps`, under the name that tables use."""
    critic_joint_actions: Count = 0
    """Number of joint actions on which a loaded critic (`critic.from`) was trained before."""
    generations: Count = 0
    generated_tokens: Count
    updates: Count
    changes: tuple[str, ...] = ()
    """Files that changed before the run was resumed, as `field: file`."""
    optimum: Number = None
    """The task's highest possible return, if known."""
    ranges: dict[str, tuple[Number, Number]] = {}
    """Bounds of the values of an evaluation metric, if known, such as 0 and 1 of a share."""
    headline: Headline = Headline()
    """Metric that selects the best checkpoint and ranks the run."""
    best: Best | None = None
    costs: dict[str, Bounded] = {}
    """Total usage of the task's services, such as the number of `judge calls`, including usage
    before the run was resumed."""
    first: Metrics
    """Metrics of the first evaluation."""
    last: Metrics

    @property
    def ending(self) -> str:
        """How the finished run ended, for displays."""
        return "finished" if self.stopped is None else f"finished early: {self.stopped}"


class Line(RecordFields):
    """A line of metrics.jsonl: the metrics of an update or an evaluation, with the run's total
    training cost so far."""

    kind: Literal["update", "evaluation"]
    iteration: Count
    environment_steps: Count
    generated_tokens: Count
    updates: Count
    wall_seconds: Seconds
    metrics: Metrics
    """Value of each metric; None if the value was not finite."""


class RecordedTurn(RecordFields):
    """One turn of a recorded episode."""

    reward: Number = None
    observations: dict[str, str] = {}
    actions: dict[str, str] = {}
    global_info: str = ""
    """m_t, the global information that critics may read."""
    privileged_info: str = ""
    picture: dict[str, Any] | None = None
    rendered: str = ""
    """The task's rendering of the state after the turn."""

    @property
    def agents(self) -> list[str]:
        """Agents that observed or acted."""
        return list(dict.fromkeys([*self.observations, *self.actions]))


class Episode(RecordFields):
    """A line of episodes.jsonl: a complete evaluation episode."""

    iteration: Count
    item: str
    value: Annotated[Number, Field(alias="return")] = None
    """Undiscounted return."""
    metrics: dict[str, Number] = {}
    turns: tuple[RecordedTurn, ...] = ()


class CriticTurn(RecordFields):
    """Variance of the returns after one turn in one update, and the part of this variance that the
    critic explained."""

    turn: Count
    number: Count
    """Number of single returns, one per joint action, compared with a value of the critic."""
    variance: float
    """Variance of these returns."""
    error_variance: float
    """Variance of return - value."""
    error_square: float
    """Mean (return - value)^2."""
    item_error_variance: float
    """Variance of return - mean, with the mean return of the item and turn as the value."""
    within: float = 0.0
    """Sum of squared deviations of returns from their group's mean. A group contains the returns
    after equal joint histories."""
    freedom: Count = 0
    """Degrees of freedom of `within`: returns in groups minus groups."""


class CriticLine(RecordFields):
    """A line of critic.jsonl: the variance that the critic explained in one update."""

    iteration: Count
    turns: tuple[CriticTurn, ...]
    calibration: tuple[tuple[float, float, Annotated[int, Field(ge=1, le=MOST)]], ...] = ()
    """Mean value, mean return and count for each tenth of the critic's values, in increasing order
    of value."""

    @field_validator("turns", "calibration")
    @classmethod
    def _usable(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave out entries with a number that is not finite or beyond `LARGEST`, such as those of
        rewards of 1e200, whose squares are infinite."""
        return tuple(
            entry
            for entry in entries
            if None not in map(finite, entry if isinstance(entry, tuple) else dict(entry).values())
        )


class RecordedNode(RecordFields):
    """A joint history in a recorded tree, without token ids, and the edge that leads to it."""

    parent: Count | None = None
    observations: dict[str, str] = {}
    global_info: str = ""
    privileged_info: str = ""
    actions: dict[str, str] = {}
    reward: Number = None
    local_rewards: dict[str, Number] = {}
    earned: tuple[tuple[int, str, Number], ...] = ()
    """Delayed local rewards as tuples (turn, agent, reward)."""
    done: bool = False
    candidate_of: str | None = None
    cut: bool = False
    missing_turns: Count = 0
    """Number of turns that a truncation at this node took from the episode."""


class RecordedTree(RecordFields):
    """A line of trees.jsonl: one training episode."""

    iteration: Count
    item: str
    agents: tuple[str, ...]
    cast: dict[str, str] = {}
    nodes: tuple[RecordedNode, ...]

    @model_validator(mode="after")
    def _in_order(self) -> RecordedTree:
        parents = [node.parent for node in self.nodes]
        if not parents or parents[0] is not None:
            raise ValueError("the first node has no parent")
        if any(parent is None or parent >= k for k, parent in enumerate(parents) if k):
            raise ValueError("parents precede their children")
        return self
