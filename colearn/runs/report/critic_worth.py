"""Computes, for each turn, the share of the variance of returns that the critics of finished runs
explained, and the share that any critic could explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from colearn.runs.over_seeds import MeanEstimate, estimate
from colearn.runs.record import Run
from colearn.runs.record.fields import CriticLine, CriticTurn, finite

from .show import show_mean, show_number

SIGNAL = "grad_signal"
"""Actor metric: the share of the squared gradient that is consistent between steps."""
LEAST_EXPLAINED = 0.5
"""Minimum fraction of the explainable share that a critic must explain to count as fitted."""
WORTHWHILE = 0.2
"""Explainable share of the variance of returns below which there is little to explain."""
_CLEARLY = 0.05
"""Share of the variance by which means by item must exceed the critic to be recommended."""
_SPELLED_OUT = 4
"""Maximum number of clauses on turns in a sentence."""
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
    noise = _gradient_noise(runs)
    turns = _turn_summaries(late)
    return CriticSummary(
        turns=turns,
        noise=noise,
        calibration=_calibration(late),
        sentence=judged(label, turns, noise),
    )


def _turn_summaries(by_seed: Sequence[Sequence[CriticLine]]) -> tuple[TurnSummary, ...]:
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
        explained=_estimated(of_seeds, "error_variance"),
        r2=_estimated(of_seeds, "error_square"),
        item_mean=_estimated(of_seeds, "item_error_variance"),
        ceiling=_ceiling([turn for turns in of_seeds for turn in turns]),
    )


def _estimated(of_seeds: Sequence[Sequence[CriticTurn]], field: str) -> MeanEstimate | None:
    return estimate([_share(turns, field) for turns in of_seeds], most=1.0)


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
    return finite(float(1 - (within / freedom) / (squares / total_freedom)))


def _gradient_noise(runs: Sequence[Run]) -> float | None:
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
    the returns can be explained, and the critic explains the returns. The last two are judged turn
    by turn, because a ceiling measured at one turn bounds no other turn. Of many turns, the
    sentence has those that differ most; every figure is in the table."""
    if noise is None:
        limits = "whether noise limits learning was not measured"
    elif noise > 1:
        limits = f"noise limits learning ({show_number(noise)} times the gradient in a step)"
    else:
        limits = f"noise hardly limits learning ({show_number(noise)} times the gradient in a step)"
    if all(turn.explained is None for turn in turns):
        return f"{label}: {limits}; all returns were equal."
    if len(turns) == 1:
        return f"{label}: {limits}; {_of_one_turn(turns[0], 'this run', '; ')}."
    by_clause: dict[str, list[TurnSummary]] = {}
    for turn in turns:
        clause = _of_one_turn(turn, "this turn", ", and ")
        by_clause.setdefault(clause, []).append(turn)
    told = sorted(by_clause, key=lambda clause: -_size(by_clause[clause][0]))[:_SPELLED_OUT]
    clauses = [
        f"at {_named(of_clause)} {clause}"
        for clause, of_clause in by_clause.items()
        if clause in told
    ]
    if len(clauses) < len(by_clause):
        clauses.append("the table has the other turns")
    return f"{label}: {limits}; {'; '.join(clauses)}."


def _of_one_turn(turn: TurnSummary, judged_part: str, joint: str) -> str:
    """The clause on one turn: the share that a critic can explain, the share that this critic
    explains, and whether this tests that a critic helps."""
    ceiling = turn.ceiling
    if turn.explained is None:
        return "all returns were equal"
    interval = "" if ceiling is None else "[{}, {}]".format(*map(show_number, ceiling[1:]))
    if ceiling is None:
        can = "how much a critic can explain is unknown, because no joint history occurred twice"
    elif ceiling[0] < WORTHWHILE < ceiling[2]:
        can = f"how much a critic can explain is uncertain, {interval}"
    elif ceiling[0] <= 0:
        can = "a critic can explain none of it"
    elif ceiling[0] < WORTHWHILE:
        can = f"a critic can explain little of it (at most {show_number(ceiling[0])})"
    else:
        can = f"a critic can explain up to {show_number(ceiling[0])} of it"
    reached = turn.explained.mean
    share = show_mean(turn.explained)
    did = f"this critic explains {f'up to {share}' if reached > 0 else 'none of it'}"
    if ceiling is not None and reached > max(ceiling[0], 0.0):
        where = "above" if reached > max(ceiling[2], 0.0) else "within"
        did += f", which is {where} the interval of what can be explained, {interval}"
    if ceiling is not None and ceiling[0] >= WORTHWHILE and reached < LEAST_EXPLAINED * ceiling[0]:
        did += f", so {judged_part} does not test whether a critic helps"
    means = turn.item_mean
    if means is not None and means.mean > max(reached, 0.0) + _CLEARLY:
        did += f"; means by item explain {show_mean(means)} (critic.baseline: item)"
    return f"{can}{joint}{did}"


def _size(turn: TurnSummary) -> float:
    """The largest share at a turn."""
    shares = [0.0 if turn.explained is None else turn.explained.mean]
    return max(shares + ([] if turn.ceiling is None else [turn.ceiling[0]]))


def _named(turns: Sequence[TurnSummary]) -> str:
    numbers = [str(turn.turn) for turn in turns]
    if len(numbers) == 1:
        return f"turn {numbers[0]}"
    return f"turns {', '.join(numbers[:-1])} and {numbers[-1]}"
