"""Computes, for each turn, the share of the variance of returns that the critics of finished runs
explained, and the share that any critic could explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from colearn.record import Run
from colearn.record.fields import CriticLine, CriticTurn
from colearn.statistics.over_seeds import MeanEstimate, estimate

from .show import show_number

SIGNAL = "grad_signal"
"""Actor metric: the share of the squared gradient that is consistent between steps."""
LEAST_EXPLAINED = 0.5
"""Minimum fraction of the explainable share that a critic must explain to count as fitted."""
WORTHWHILE = 0.2
"""Explainable share of the variance of returns below which there is little to explain."""
_RESAMPLES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSummary:
    """Statistics of the critic at one turn, computed over the second half of the updates and
    averaged over seeds."""

    turn: int
    explained: MeanEstimate | None
    """Explained variance of single returns, computed from the error variance. The critic's bias
    therefore does not reduce it."""
    r2: MeanEstimate | None
    """Explained variance of single returns, computed from the mean squared error. The critic's bias
    therefore reduces it."""
    item_mean: MeanEstimate | None
    """Explained variance of a baseline: the mean return of each item and turn in place of the
    critic's value."""
    ceiling: tuple[float, float, float] | None
    """Share of the variance that any critic could explain, with the bounds of a 95% interval over
    updates. None if no joint history occurred twice in an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticSummary:
    """Statistics of one algorithm's critics over its seeds."""

    turns: tuple[TurnSummary, ...]
    noise: float | None
    """Ratio of the norm of the noise in an actor's gradient to the norm of the gradient, per
    optimiser step; None if not measured."""
    calibration: tuple[tuple[float, float], ...]
    """Mean value and mean return by tenth of the values, in the second half of the updates."""
    sentence: str
    """Sentence that states whether the three conditions for a useful critic hold in these runs."""


def critic_summary(label: str, runs: Sequence[Run]) -> CriticSummary | None:
    """Summary of the critics of an algorithm; None if no run has recorded a critic."""
    late = [_second_half(run.folder.critic_lines()) for run in runs]
    late = [lines for lines in late if lines]
    if not late:
        return None
    noise = gradient_noise(runs)
    turns = turn_summaries(late)
    return CriticSummary(
        turns=turns,
        noise=noise,
        calibration=_calibration(late),
        sentence=judged(label, turns, noise),
    )


def turn_summaries(by_seed: Sequence[Sequence[CriticLine]]) -> tuple[TurnSummary, ...]:
    """Return the explained variance of each turn, computed from the recorded lines of each seed."""
    numbers = sorted({turn.turn for lines in by_seed for line in lines for turn in line.turns})
    return tuple(_turn(number, by_seed) for number in numbers)


def _second_half(lines: Sequence[CriticLine]) -> list[CriticLine]:
    by_iteration = {line.iteration: line for line in lines}  # a resumed run may repeat one
    ordered = [by_iteration[iteration] for iteration in sorted(by_iteration)]
    return ordered[len(ordered) // 2 :]


def _turn(number: int, late: Sequence[Sequence[CriticLine]]) -> TurnSummary:
    of_seeds = [list(_of_turn(number, lines)) for lines in late]
    of_seeds = [turns for turns in of_seeds if turns]
    return TurnSummary(
        turn=number,
        explained=estimate([_share(turns, "error_variance") for turns in of_seeds]),
        r2=estimate([_share(turns, "error_square") for turns in of_seeds]),
        item_mean=estimate([_share(turns, "item_error_variance") for turns in of_seeds]),
        ceiling=_ceiling([turn for turns in of_seeds for turn in turns]),
    )


def _of_turn(number: int, lines: Sequence[CriticLine]) -> Iterator[CriticTurn]:
    return (turn for line in lines for turn in line.turns if turn.turn == number)


def _share(turns: Sequence[CriticTurn], field: str) -> float | None:
    """Returns 1 minus the unexplained share of the variance, pooled over updates; None if all
    returns are equal."""
    spread = sum(turn.number * turn.variance for turn in turns)
    if spread <= 0:
        return None
    return 1 - sum(turn.number * getattr(turn, field) for turn in turns) / spread


def _ceiling(turns: Sequence[CriticTurn]) -> tuple[float, float, float] | None:
    sums = np.array([(t.within, t.freedom, t.variance * t.number, t.number - 1) for t in turns])
    share = _explainable(sums)
    if share is None:
        return None
    rng = np.random.default_rng(0)
    draws = (sums[rng.integers(len(sums), size=len(sums))] for _ in range(_RESAMPLES))
    resamples = [resampled for chosen in draws if (resampled := _explainable(chosen)) is not None]
    low, high = np.quantile(resamples, [0.025, 0.975])
    return share, float(low), float(high)


def _explainable(sums: np.ndarray) -> float | None:
    within, freedom, squares, total_freedom = sums.sum(0)
    if freedom < 1 or total_freedom < 1 or squares <= 0:
        return None
    # several agents of one tree repeat its returns: the variance is that of distinct ones
    return float(1 - (within / freedom) / (squares / total_freedom))


def gradient_noise(runs: Sequence[Run]) -> float | None:
    """Ratio of gradient noise to gradient norm, computed from the actors' mean signal share in the
    second half of the updates."""
    shares = [
        value
        for run in runs
        for line in run.updates[len(run.updates) // 2 :]
        for name, value in line.metrics.items()
        if name.endswith(f"/{SIGNAL}") and not name.startswith("critic/") and value is not None
    ]
    if not shares:
        return None
    share = min(max(fmean(shares), 1e-4), 1.0)
    return float(((1 - share) / share) ** 0.5)


def _calibration(late: Sequence[Sequence[CriticLine]]) -> tuple[tuple[float, float], ...]:
    bins = sorted(entry for lines in late for line in lines for entry in line.calibration)
    if not bins:
        return ()
    values, returns, weights = np.array(bins).T
    cut = np.array_split(np.arange(len(bins)), min(10, len(bins)))
    return tuple(
        (
            float(np.average(values[part], weights=weights[part])),
            float(np.average(returns[part], weights=weights[part])),
        )
        for part in cut
    )


def judged(label: str, turns: Sequence[TurnSummary], noise: float | None) -> str:
    """Returns a sentence that states whether three conditions hold: gradient noise limits learning,
    the returns can be explained, and the critic explains the returns."""
    if noise is None:
        limits = "whether noise limits learning was not measured"
    elif noise > 1:
        limits = f"noise limits learning ({show_number(noise)} times the gradient in a step)"
    else:
        limits = f"noise hardly limits learning ({show_number(noise)} times the gradient in a step)"
    known = [turn.ceiling for turn in turns if turn.ceiling is not None]
    explained = [turn.explained.mean for turn in turns if turn.explained is not None]
    means = [turn.item_mean.mean for turn in turns if turn.item_mean is not None]
    best = max((ceiling[0] for ceiling in known), default=None)
    if best is None:
        can = "how much a critic can explain is unknown, because no joint history occurred twice"
    elif best <= 0:
        can = "a critic can explain none of it"
    elif best < WORTHWHILE:
        can = f"a critic can explain little of it (at most {show_number(best)})"
    else:
        can = f"a critic can explain up to {show_number(best)} of it"
    if not explained:
        return f"{label}: {limits}; all returns were equal."
    reached, by_item = max(explained), max(means, default=0.0)
    did = f"this critic explains {f'up to {show_number(reached)}' if reached > 0 else 'none of it'}"
    ceiling = 1.0 if best is None else best
    if ceiling >= WORTHWHILE and reached < LEAST_EXPLAINED * ceiling:
        did += ", so this run does not test whether a critic helps"
    if by_item > max(reached, 0.0) + 0.05:
        did += f"; means by item explain {show_number(by_item)} (critic.baseline: item)"
    return f"{label}: {limits}; {can}; {did}."
