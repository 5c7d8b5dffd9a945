"""Tabular self-play in Kuhn poker: convergence of `marshal` by setting.

    python benchmarks/kuhn_tables.py [--seeds 4] [--first 0] [--roles | --rows]

One number for each information state and action, Adam, PPO's clip and dual clip, and games drawn
from the 30 ways in which one can end: what `marshal` does, without what a network adds. Prints
NashConv at the start, at quarters and at the end (uniform play: 0.917), mean over seeds, and the
largest at the end.

`--rows`: MARSHAL against MT-GRPO, SPIRAL, a fixed opponent that plays an equilibrium and a bonus
for each reply (Tables 3, 7, 10 and 12), all with `kl 0.5, refresh 10`. A legal reply is one word,
so what Eq. 4 pays for short ones is a constant for each turn. First with the weights of the paper's
Eq. 2 and 3 (1/P, 1/G and 1/K), which `marshal` has by default; then with every turn alike, as
`advantage.equal_trajectories: false` has it. All other tables have every turn alike where they do
not say "Eq. 3".

`--roles`: a mean of returns for each role against one for both (MARSHAL, Figure 6), where player_0
pays player_1 a fee for each hand: no choice changes it, so the game stays as it is and the roles'
returns lie apart by twice as much.

Twelve seeds are too few to see the claims of Table 10 and of Figure 6 with Eq. 3's weights; 48 show
both (`results/paper_rows.md`, `results/games.md`).
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np

from colearn.runs.over_seeds import estimate

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


EQUILIBRIUM = np.array(
    [
        *([2 / 3, 1 / 3], [1, 0], [0, 1]),
        *([1, 0], [1 / 3, 2 / 3], [0, 1]),
        *([2 / 3, 1 / 3], [1, 0], [0, 1]),
        *([1, 0], [2 / 3, 1 / 3], [0, 1]),
    ],
    dtype=float,
)
"""An equilibrium: the probabilities of pass and bet (fold and call) by information state."""


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


def seated(policy: Any, learner: int) -> Any:
    """The policy in the seat of `learner`, the equilibrium in the other."""
    mixed = EQUILIBRIUM.copy()
    states = slice(OPENING, BEHIND_PASS) if learner == 0 else slice(BEHIND_PASS, None)
    mixed[states] = policy[states]
    return mixed


def draw(rng: np.random.Generator, policy: Any, games: int) -> Any:
    """The number of games by ending."""
    weights = chances(policy)
    return rng.multinomial(games, weights / weights.sum()).astype(float)


def group_weights(drawn: Any, drawn_1: Any, *, by_role: bool = True) -> tuple[Any, Any]:
    """Eq. 3 as the class `SumThenNormalize` has it, by ending: of player_0's first turns, of
    player_1's turns and of player_0's second turns. The factor N / (G K) of an advantage, where a
    group has N turns in G trajectories and K in this one, and the weight 1 / (P N) of a turn in the
    loss, times the number of games. The product is Eq. 3's 1 / (P G K)."""
    turns = np.array([drawn @ (1 + TWICE), drawn_1.sum()])
    games = np.array([drawn.sum(), drawn_1.sum()])
    if not by_role:
        turns, games = np.full(2, turns.sum()), np.full(2, games.sum())
    factor = turns[0] / (games[0] * (1 + TWICE))
    factor_1 = np.full(len(drawn), turns[1] / games[1])
    share, share_1 = (count / n for count, n in zip((drawn, drawn_1), turns, strict=True))
    roles = 2 if by_role else 1
    return (
        np.concatenate([factor, factor_1, factor[TWICE]]),
        np.concatenate([share, share_1, share[TWICE]]) / roles,
    )


def standardised(rewards: Any, count: Any) -> Any:
    """Rewards of a turn less their mean, in deviations; 0 where nobody reached it."""
    if not count.sum():
        return np.zeros_like(rewards)
    mean = count @ rewards / count.sum()
    return (rewards - mean) / (np.sqrt(count @ (rewards - mean) ** 2 / count.sum()) + 1e-6)


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
    method: str = "marshal",
    fixed: bool = False,
    bonus: float = 0.0,
) -> list[float]:
    """NashConv at the start, the quarters and the end. `fixed`: each game is learned from in one
    seat, and the other plays `EQUILIBRIUM`; `bonus` is paid for each turn. `spiral`: its moving
    baseline of returns is their mean in an update of hundreds of games."""
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
        played = np.exp(log_policy(logits))
        if fixed:
            seats = [seated(played, learner) for learner in (0, 1)]
            drawn, drawn_1 = (draw(rng, seat, games // 2) for seat in seats)
        else:
            drawn = drawn_1 = draw(rng, played, games)
        turns = drawn @ (1 + TWICE)
        first_turn = paid + bonus * (1 + TWICE)
        again, reply = paid + bonus, bonus - paid
        won = drawn @ first_turn + (drawn * TWICE) @ again
        lost = drawn_1 @ reply
        pooled = (won + lost) / (turns + drawn_1.sum())
        own = first_turn - (won / turns if by_role else pooled)
        own_again = again - (won / turns if by_role else pooled)
        others = reply - (lost / drawn_1.sum() if by_role else pooled)
        if method == "mt_grpo":
            own_again = standardised(again, drawn * TWICE)
            own = standardised(np.where(TWICE, bonus, paid + bonus), drawn) + TWICE * own_again
            others = standardised(reply, drawn_1)
        elif method == "spiral":
            own = own_again = first_turn - drawn @ first_turn / drawn.sum()
            others = reply - lost / drawn_1.sum()
        advantage = np.concatenate([own, others, own_again[TWICE]])
        count = np.concatenate([drawn, drawn_1, drawn[TWICE]])
        weight = count / count.sum()
        if equal_trajectories:
            factor, weight = group_weights(drawn, drawn_1, by_role=by_role)
            advantage = advantage * factor
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
            np.add.at(gradient, state, terms * weight[:, None])
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
    **{
        f"kl 0.5, refresh 10, {named}{games} games": {
            "kl": 0.5,
            "refresh": 10,
            "games": games,
            "equal_trajectories": weighed,
        }
        for named, weighed in (("Eq. 3, ", True), ("", False))
        for games in (512, 2048, 131072)
    },
}


HELD: dict[str, Any] = {"kl": 0.5, "refresh": 10}
ROWS: dict[str, dict[str, Any]] = {
    "marshal": HELD,
    "marshal, fixed opponent": {**HELD, "fixed": True},
    "mt_grpo": {**HELD, "method": "mt_grpo"},
    "spiral_rae": {**HELD, "method": "spiral"},
    "marshal, bonus 0.5": {**HELD, "bonus": 0.5},
    "marshal, bonus 1": {**HELD, "bonus": 1.0},
}


def rows(seeds: range) -> None:
    """The rows with Eq. 3's weights and without; differences are paired by the seed."""
    for named, weighed in (("Eq. 3's weights", True), ("every turn alike", False)):
        print(f"| {named} | start | 1/4 | 1/2 | 3/4 | end | end less `marshal`'s, 95% interval |")
        print("|---|---|---|---|---|---|---|")
        first: Any = None
        for name, settings in ROWS.items():
            played = [run(s, equal_trajectories=weighed, **settings)[:5] for s in seeds]
            runs = np.array(played)
            first = runs[:, -1] if first is None else first
            gap = estimate(list(runs[:, -1] - first))
            assert gap is not None
            told = "" if name == "marshal" else f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
            cells = " | ".join(f"{value:.3f}" for value in runs.mean(0))
            print(f"| `{name}` | {cells} | {told} |", flush=True)
        print()


def roles(seeds: range) -> None:
    """A mean by role against one for both, by the fee; differences are paired by the seed."""
    print("| weights | fee | by role | pooled | pooled less by role, 95% interval |")
    print("|---|---|---|---|---|")
    for weighed, fee in itertools.product((True, False), (0.0, 0.5, 1.0, 2.0)):
        held = {"kl": 0.5, "refresh": 10, "fee": fee, "equal_trajectories": weighed}
        apart, pooled = (
            np.array([run(s, by_role=by_role, **held)[-1] for s in seeds])
            for by_role in (True, False)
        )
        gap = estimate(list(pooled - apart))
        assert gap is not None
        print(
            f"| {'Eq. 3' if weighed else 'turns alike'} | {fee} | "
            f"{apart.mean():.3f} | {pooled.mean():.3f} | "
            f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--roles", action="store_true", help="a mean by role against one for both")
    parser.add_argument("--rows", action="store_true", help="Tables 3, 7, 10 and 12 of MARSHAL")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    if given.roles or given.rows:
        (roles if given.roles else rows)(seeds)
        return
    print(
        "| settings | start | 1/4 | 1/2 | 3/4 | end | largest end |\n|---|---|---|---|---|---|---|"
    )
    for name, settings in CASES.items():
        runs = np.array([run(seed, **settings)[:5] for seed in seeds])
        cells = " | ".join(f"{value:.3f}" for value in runs.mean(0))
        print(f"| {name} | {cells} | {runs[:, -1].max():.3f} |", flush=True)


if __name__ == "__main__":
    main()
