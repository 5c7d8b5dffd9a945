"""Tabular self-play in Kuhn poker: convergence of `marshal` by setting.

    python benchmarks/kuhn_tables.py [--seeds 4] [--roles]

One number for each information state and action, Adam, PPO's clip and dual clip, and games drawn
from the 30 ways in which one can end: what `marshal` does, without what a network adds. Prints
NashConv at the start, at quarters and at the end (uniform play: 0.917), mean over seeds, and the
largest at the end.

`--roles`: a mean of returns for each role against one for both (MARSHAL, Figure 6), where player_0
pays player_1 a fee for each hand: no choice changes it, so the game stays as it is and the roles'
returns lie apart by twice as much.
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np

from colearn.statistics import estimate

SHOWDOWN = np.sign(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
DEALS = [deal for deal in itertools.product(range(3), repeat=2) if deal[0] != deal[1]]
OPENING, ANSWER, BEHIND_PASS, BEHIND_BET = 0, 3, 6, 9
"""First information state of each kind: player_0's first move and its answer to a bet, player_1's
move after a pass and after a bet; the card is added."""


def endings() -> list[tuple[int, int, int, int, int, int, float]]:
    """(state, action) of both players' first moves and of player_0's second, -1 where there is
    none, and what player_0 is paid."""
    rows = []
    for first, second in DEALS:
        high = SHOWDOWN[first, second]
        for bet, other, call, paid in (
            (1, 0, -1, 1.0),
            (1, 1, -1, 2 * high),
            (0, 0, -1, high),
            (0, 1, 0, -1.0),
            (0, 1, 1, 2 * high),
        ):
            kind = BEHIND_BET if bet else BEHIND_PASS
            rows.append((OPENING + first, bet, kind + second, other, ANSWER + first, call, paid))
    return rows


TABLE = np.array(endings())
STATES, ACTIONS, PAID = (
    TABLE[:, [0, 2, 4]].astype(int),
    TABLE[:, [1, 3, 5]].astype(int),
    TABLE[:, 6],
)
TWICE = ACTIONS[:, 2] >= 0


def log_policy(logits: Any) -> Any:
    return logits - np.logaddexp(logits[:, 0], logits[:, 1])[:, None]


def chances(policy: Any) -> Any:
    """Of each ending."""
    third = np.where(TWICE, policy[STATES[:, 2], np.maximum(ACTIONS[:, 2], 0)], 1.0)
    return policy[STATES[:, 0], ACTIONS[:, 0]] * policy[STATES[:, 1], ACTIONS[:, 1]] * third / 6


def nash_conv(logits: Any) -> float:
    """By trying all of a player's deterministic policies, card by card."""
    policy = np.exp(log_policy(logits))
    gain = 0.0
    for player, blocks in ((0, (OPENING, ANSWER)), (1, (BEHIND_PASS, BEHIND_BET))):
        sign = 1 - 2 * player
        value = best = sign * float(chances(policy) @ PAID)
        for card in range(3):
            chosen = [block + card for block in blocks]
            tried = []
            for actions in itertools.product((0, 1), repeat=2):
                other = policy.copy()
                other[chosen] = np.eye(2)[list(actions)]
                tried.append(sign * float(chances(other) @ PAID))
            best += max(tried) - value
        gain += best - value
    return gain


def run(
    seed: int,
    *,
    iterations: int = 150,
    games: int = 512,
    epochs: int = 8,
    rate: float = 0.05,
    kl: float = 0.0,
    refresh: int | None = None,
    entropy: float = 0.0,
    anneal: bool = False,
    equal_trajectories: bool = False,
    by_role: bool = True,
    fee: float = 0.0,
) -> list[float]:
    """NashConv at the start, the quarters and the end."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 0.1, (12, 2))
    reference, first, second = logits.copy(), np.zeros((12, 2)), np.zeros((12, 2))
    nash_convs, steps = [nash_conv(logits)], 0
    paid = PAID - fee
    state = np.concatenate([STATES[:, 0], STATES[:, 1], STATES[TWICE, 2]])
    action = np.concatenate([ACTIONS[:, 0], ACTIONS[:, 1], ACTIONS[TWICE, 2]])
    for iteration in range(iterations):
        left = 1.0 - iteration / iterations
        fade = left if anneal else 1.0
        step = rate * 0.5 * (1 + math.cos(math.pi * (1 - left)))
        weights = chances(np.exp(log_policy(logits)))
        drawn = rng.multinomial(games, weights / weights.sum()).astype(float)
        turns = drawn @ (1 + TWICE)
        won, lost = drawn @ (paid * (1 + TWICE)), drawn @ paid
        pooled = (won - lost) / (turns + games)
        own = paid - (won / turns if by_role else pooled)
        others = -paid - (-lost / games if by_role else pooled)
        if equal_trajectories:
            own = own * turns / (games * (1 + TWICE))
        advantage = np.concatenate([own, others, own[TWICE]])
        count = np.concatenate([drawn, drawn, drawn[TWICE]])
        old = log_policy(logits)[state, action]
        behind = np.exp(log_policy(reference))[state, action]
        for _ in range(epochs):
            logs = log_policy(logits)
            policy = np.exp(logs)
            score = np.eye(2)[action] - policy[state]
            ratio = np.exp(logs[state, action] - old)
            inside = np.where(advantage > 0, ratio <= 1.2, (ratio >= 0.8) & (ratio <= 3.0))
            slope = -(advantage * ratio * inside) + fade * kl * (1 - behind / policy[state, action])
            terms = slope[:, None] * score
            spread = -(policy * logs).sum(1, keepdims=True)
            terms += fade * entropy * (policy * (logs + spread))[state]
            gradient = np.zeros((12, 2))
            np.add.at(gradient, state, terms * (count / count.sum())[:, None])
            steps += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            scale = np.sqrt(second / (1 - 0.999**steps)) + 1e-8
            logits = logits - step * first / (1 - 0.9**steps) / scale
        if refresh and (iteration + 1) % refresh == 0:
            reference = logits.copy()
        if (iteration + 1) * 4 % iterations < 4:
            nash_convs.append(nash_conv(logits))
    return nash_convs


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "entropy 0.05": {"entropy": 0.05},
    "entropy 0.5, fading": {"entropy": 0.5, "anneal": True},
    "kl 0.5 to the start, fading": {"kl": 0.5, "anneal": True},
    "kl 0.5, refresh 10, equal trajectories": {
        "kl": 0.5,
        "refresh": 10,
        "equal_trajectories": True,
    },
    "kl 0.5, refresh 10": {"kl": 0.5, "refresh": 10},
    "kl 0.5, refresh 10, 2048 games": {"kl": 0.5, "refresh": 10, "games": 2048},
}


def roles(seeds: int) -> None:
    """A mean by role against one for both, by the fee; differences are paired by the seed."""
    print("| fee | by role | pooled | pooled less by role, 95% interval |\n|---|---|---|---|")
    for fee in (0.0, 0.5, 1.0, 2.0):
        apart, pooled = (
            np.array(
                [run(s, kl=0.5, refresh=10, by_role=by_role, fee=fee)[-1] for s in range(seeds)]
            )
            for by_role in (True, False)
        )
        gap = estimate(list(pooled - apart))
        assert gap is not None
        print(
            f"| {fee} | {apart.mean():.3f} | {pooled.mean():.3f} | "
            f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--roles", action="store_true", help="a mean by role against one for both")
    given = parser.parse_args()
    if given.roles:
        roles(given.seeds)
        return
    print(
        "| settings | start | 1/4 | 1/2 | 3/4 | end | largest end |\n|---|---|---|---|---|---|---|"
    )
    for name, settings in CASES.items():
        runs = np.array([run(seed, **settings)[:5] for seed in range(given.seeds)])
        cells = " | ".join(f"{value:.3f}" for value in runs.mean(0))
        print(f"| {name} | {cells} | {runs[:, -1].max():.3f} |", flush=True)


if __name__ == "__main__":
    main()
