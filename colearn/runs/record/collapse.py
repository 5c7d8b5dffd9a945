"""Detects from the metrics of updates that training has collapsed, and since which update.

A sign must hold in several consecutive updates. Signs also occur in runs that have solved their
task: there, episodes earn the best return that the run has seen, and the sign is not a collapse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite

Measurements = Mapping[str, float | None]

PATIENCE = 5
"""Number of consecutive updates in which a sign must hold, and of updates in a mean return."""
LONG_PATIENCE = 20
"""The number of updates for a single model, whose agents may have nothing to learn for a while."""
_NEAR = 0.05
"""Share of the range of returns within which a mean return equals the best return."""
_CLEAR = 0.25
"""Share of the range of returns by which a mean return is below the best one if it has fallen."""
_NO_GRADIENT = 1e-10
_PAID = "check that a good answer earns a reward (an episode without any counts as 0)"
"""Remedy before all others if every episode has earned 0."""


class Sign(Enum):
    """A sign of a collapse with its first remedy, the cause before its effects."""

    INVALID = (
        "every training episode ends with an invalid action",
        "if actions were valid before, lower models.*.learning_rate, or raise task.invalid_penalty "
        "where the task has it and an episode can cost more; otherwise state the form of a valid "
        "action in the prompt, or train on examples first (colearn sft)",
    )
    CUT = (
        "every answer is cut at its token limit",
        "raise agents.*.sampling.max_tokens",
    )
    ONE_ANSWER = (
        "an agent gives one answer to all prompts",
        "lower models.*.learning_rate or raise algorithm.loss.kl, and start from the best "
        "checkpoint",
    )
    EQUAL = (
        "no answer earns more than the others of its group",
        "raise agents.*.sampling.temperature, or train on items that are solved now and then",
    )
    NO_GRADIENT = (
        "no trained model has a gradient",
        "check that the reward is a number and differs between answers",
    )
    ONE_WITHOUT_GRADIENT = (
        "a trained model has no gradient while another one learns",
        "find it by its metric MODEL/grad_norm, and start from the best checkpoint with a lower "
        "models.MODEL.learning_rate or a higher agents.*.sampling.temperature",
    )

    @property
    def patience(self) -> int:
        """Number of consecutive updates in which the sign must hold."""
        return LONG_PATIENCE if self is Sign.ONE_WITHOUT_GRADIENT else PATIENCE

    @property
    def what(self) -> str:
        return self.value[0]

    @property
    def remedy(self) -> str:
        return self.value[1]


_WITHOUT_LEARNING = (Sign.EQUAL, Sign.NO_GRADIENT)
"""Signs with which nothing is learned, whatever the return was before."""
_WITHOUT_GRADIENT = (*_WITHOUT_LEARNING, Sign.ONE_WITHOUT_GRADIENT)


def signs(metrics: Measurements) -> list[Sign]:
    """The signs of all models together that an update's metrics show."""

    def of_models(name: str) -> list[float]:
        return list(_by_model(metrics, name).values())

    norms = of_models("grad_norm")
    shown = {
        Sign.INVALID: metrics.get("invalid_episodes") == 1.0,
        Sign.CUT: metrics.get("cut_answers") == 1.0,
        Sign.ONE_ANSWER: any(share == 1.0 for share in of_models("top_answer")),
        Sign.EQUAL: metrics.get("advantage/zero") == 1.0 and not of_models("teacher_kl"),
        Sign.NO_GRADIENT: metrics.get("advantage/actions") == 0.0
        or (bool(norms) and max(norms) <= _NO_GRADIENT),
    }
    return [sign for sign, holds in shown.items() if holds]


def _by_model(metrics: Measurements, name: str) -> dict[str, float]:
    return {
        key: value
        for key, value in metrics.items()
        if key.endswith(f"/{name}") and not key.startswith("critic/") and value is not None
    }


def _left_behind(metrics: Measurements) -> list[str]:
    """The models without a gradient, if another model has one."""
    norms = _by_model(metrics, "grad_norm")
    still = [model for model, norm in norms.items() if norm <= _NO_GRADIENT]
    return still if len(still) < len(norms) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a run's last updates show."""

    sign: Sign
    """The first sign in the order of causes."""
    since: int
    """Iteration of the first update that showed the sign."""
    signs: tuple[Sign, ...]
    mean: float | None
    """Mean return of the last `PATIENCE` updates; None if no episode was scored."""
    best: float | None
    """Highest return of a training episode so far."""
    solved: bool
    """Whether the episodes earn the best return, so that the signs are no collapse."""

    @property
    def what(self) -> str:
        return " and ".join(sign.what for sign in self.signs)


@dataclass
class CollapseWatch:
    """Follows the metrics of a run's updates."""

    optimum: float | None = None
    """The task's highest possible return, if known."""
    since: dict[Sign, int] = field(default_factory=dict)
    """Iteration of the first update of each sign that holds."""
    _held: dict[Sign, int] = field(default_factory=dict)
    _still: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each model that is left behind, the iteration of the first update and the number of
    updates since then."""
    _returns: list[float] = field(default_factory=list)
    _best: float | None = None
    _lowest: float | None = None
    _lowest_mean: float | None = None
    _best_mean: float | None = None

    def update(self, iteration: int, metrics: Measurements) -> Finding | None:
        """Returns what the updates so far show; None if they show neither a collapse nor a solved
        task."""
        mean = metrics.get("return")
        if mean is not None and isfinite(mean):
            self._follow(mean, metrics.get("best_return"))
        now = signs(metrics)
        for sign in Sign:
            self._held[sign] = self._held.get(sign, 0) + 1 if sign in now else 0
            if self._held[sign] == 1:
                self.since[sign] = iteration
        self._follow_models(iteration, metrics)
        lasting = [sign for sign in Sign if self._held[sign] >= sign.patience]
        solved = self._solved
        told = tuple(
            sign
            for sign in lasting
            if (sign in _WITHOUT_LEARNING if solved else self._alarming(sign, lasting))
        )
        if not told:
            return None
        return Finding(
            sign=told[0],
            since=self.since[told[0]],
            signs=told,
            mean=self._mean,
            best=self._best,
            solved=solved,
        )

    def _follow_models(self, iteration: int, metrics: Measurements) -> None:
        earlier = self._still
        self._still = {}
        for model in _left_behind(metrics):
            first, count = earlier.get(model, (iteration, 0))
            self._still[model] = first, count + 1
        if self._still:
            sign = Sign.ONE_WITHOUT_GRADIENT
            self.since[sign], self._held[sign] = max(self._still.values(), key=lambda one: one[1])

    def _follow(self, mean: float, best: float | None) -> None:
        self._returns = [*self._returns, mean][-PATIENCE:]
        self._best = max(
            value for value in (self._best, best, mean) if value is not None and isfinite(value)
        )
        self._lowest = mean if self._lowest is None else min(self._lowest, mean)
        if len(self._returns) == PATIENCE:
            window = sum(self._returns) / PATIENCE
            self._best_mean = max(window, window if self._best_mean is None else self._best_mean)
            self._lowest_mean = min(
                window, window if self._lowest_mean is None else self._lowest_mean
            )

    @property
    def _mean(self) -> float | None:
        return sum(self._returns) / len(self._returns) if self._returns else None

    @property
    def _range(self) -> float:
        if self._best is None or self._lowest is None:
            return 0.0
        return self._best - self._lowest

    @property
    def _solved(self) -> bool:
        """Whether the last episodes earn the optimum, or the best return while others have earned
        less."""
        mean, best, span = self._mean, self._best, self._range
        if mean is None or best is None:
            return False
        if self.optimum is not None and mean >= self.optimum - max(_NEAR * span, 1e-9):
            return True
        return span > 0.0 and mean >= best - _NEAR * span

    def _alarming(self, sign: Sign, lasting: Sequence[Sign]) -> bool:
        """Whether a sign is a collapse. One answer and cut answers are none while the models learn
        and the return is above its lowest."""
        if sign is Sign.INVALID or any(other in _WITHOUT_GRADIENT for other in lasting):
            return True
        mean, best, lowest, span = self._mean, self._best_mean, self._lowest_mean, self._range
        if mean is None or best is None or lowest is None or span <= 0.0:
            return True
        return mean < best - _CLEAR * span and mean <= lowest + _NEAR * span


def sentence(found: Finding) -> str:
    """Returns a line that says since when and what, and the first remedy. A solved task and a run
    in which nothing ever differed are told as such."""
    if found.solved:
        return (
            f"since update {found.since} {found.what}, and the episodes earn the best return so "
            f"far ({shown(found.best)}): if the task is solved, stop here"
        )
    if found.mean is None:
        line = f"nothing is learned since update {found.since}: {found.what}; no episode is scored"
    elif found.best is not None and found.best > found.mean:
        line = (
            f"collapse since update {found.since}: {found.what}; mean return {shown(found.mean)}, "
            f"best episode {shown(found.best)}"
        )
    else:
        line = (
            f"nothing is learned since update {found.since}: {found.what}; every episode has "
            f"earned {shown(found.mean)}, so the task is solved or out of reach"
        )
    remedy = found.sign.remedy
    if found.sign is Sign.EQUAL and found.best == found.mean == 0.0:
        remedy = f"{_PAID}; if it does, {remedy}"
    return f"{line}; first remedy: {remedy}"


def shown(number: float | None) -> str:
    """A return in a sentence and its table."""
    return "-" if number is None else f"{number:.4g}"
