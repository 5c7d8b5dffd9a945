"""Match statistics: payoffs by seat, win matrices, Elo ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from colearn.contract.types import Tree

Array = NDArray[np.float64]
ELO_SCALE = 400.0 / np.log(10.0)
"""Elo points for one unit of log odds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One player's games in one seat."""

    games: int
    payoff: float
    """Mean, the game's own."""
    error: float
    """Standard error of that mean."""
    won: float
    """Shares of the games; a game is won where the player's payoff is above all others'."""
    drawn: float
    lost: float
    faults: Mapping[str, float]
    """Share of games that ended by a malformed, an illegal or a truncated reply of this player."""


def tally(trees: Sequence[Tree[Any]], player: str, seat: str) -> Tally:
    """Of the games in which `player` sat in `seat`, played out as chains.

    Payoffs are the tasks' metrics `payoff_SEAT`, faults those that `faults` finds.

    Errors: ValueError where there is no such game.
    """
    played = [tree for tree in trees if tree.player(seat) == player]
    if not played:
        raise ValueError(f"{player} never sat in {seat}")
    margins, payoffs = [], []
    faults: dict[str, int] = {"malformed": 0, "illegal": 0, "truncated": 0}
    for tree in played:
        end = tree.nodes[-1]
        paid = {agent: end.metrics[f"payoff_{agent}"] for agent in tree.agents}
        payoffs.append(paid[seat])
        margins.append(paid[seat] - max(v for agent, v in paid.items() if agent != seat))
        fault = last_fault(tree)
        if fault is not None and fault[0] == seat:
            faults[fault[1]] += 1
    spread = float(np.std(payoffs, ddof=1)) if len(played) > 1 else 0.0
    return Tally(
        games=len(played),
        payoff=float(np.mean(payoffs)),
        error=spread / len(played) ** 0.5,
        won=float(np.mean([margin > 0 for margin in margins])),
        drawn=float(np.mean([margin == 0 for margin in margins])),
        lost=float(np.mean([margin < 0 for margin in margins])),
        faults={name: count / len(played) for name, count in faults.items()},
    )


def add_percentages(rows: Sequence[dict[str, Any]], seen: Sequence[Mapping[str, Any]] = ()) -> None:
    """Set `normalised` of each row: the payoff in percent of the way from the worst observed to the
    row's `optimum` (MARSHAL, Fig. 3 and Appendix C). Observed are the rows of the same game,
    opponent and seat, here and among those `seen` before; None where there is no other.
    """
    observed: dict[tuple[str, ...], list[float]] = {}
    for row in (*rows, *seen):
        observed.setdefault(_setting(row), []).append(row["payoff"])
    for row in rows:
        payoffs = observed[_setting(row)]
        worst, best = min(payoffs), row["optimum"]
        known = len(payoffs) > 1 and best > worst
        row["normalised"] = 100.0 * (row["payoff"] - worst) / (best - worst) if known else None


def _setting(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["game"], row["opponent"], row["seat"]


def last_fault(tree: Tree[Any]) -> tuple[str, str] | None:
    """Who ended the game by a reply that was not valid, and how it failed: malformed, illegal, or
    truncated, a malformed one that was cut off at the token limit."""
    end = tree.nodes[-1]
    kind = next((name for name in ("malformed", "illegal") if end.metrics.get(name)), None)
    if kind is None:
        return None
    [(seat, action)] = end.actions.items()
    return seat, "truncated" if kind == "malformed" and action.finish == "length" else kind


def win_matrix(results: Mapping[tuple[str, str], Sequence[float]], names: Sequence[str]) -> Array:
    """Row against column: mean score, 1 for a win, 1/2 for a draw; nan where they never met.

    `results`: by (one, other) the scores of the first. A pair counts in both directions.
    """
    win_rates = np.full((len(names), len(names)), np.nan)
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            scores = [*results.get((one, other), ())]
            scores += [1.0 - score for score in results.get((other, one), ())]
            if i != j and scores:
                win_rates[i, j] = float(np.mean(scores))
    return win_rates


def elo(
    results: Mapping[tuple[str, str], Sequence[float]], names: Sequence[str]
) -> dict[str, float]:
    """Ratings with mean 0: maximum likelihood of the Bradley-Terry model, with one drawn game
    against everybody added so that who always won has a finite one."""
    place = {name: number for number, name in enumerate(names)}
    score = np.full((len(names), len(names)), 0.5)
    np.fill_diagonal(score, 0.0)
    for (one, other), scores in results.items():
        score[place[one], place[other]] += sum(scores)
        score[place[other], place[one]] += len(scores) - sum(scores)

    def loss(strength: Array) -> tuple[float, Array]:
        gap = strength[:, None] - strength[None, :]
        win = 1.0 / (1.0 + np.exp(-gap))
        slope = score.sum(axis=1) - ((score + score.T) * win).sum(axis=1)
        return float((score * np.logaddexp(0.0, -gap)).sum()), -slope

    best = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B").x
    return {name: float(ELO_SCALE * (best[number] - best.mean())) for name, number in place.items()}
