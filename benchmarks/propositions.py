"""Experiments on Propositions 4.1 to 4.3 of the CoLLM paper and the bias of Eq. 2 and 4.

    python benchmarks/propositions.py --quick     # a tenth of the samples: under two minutes
    python benchmarks/propositions.py             # the recorded numbers and the figure

Softmax tables play finite problems through the library's collector, tree shapes and advantages.
Their gradient is known exactly, so bias and variance of every estimator are measured against it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _propositions_critics import converged, exact, expected_gradient, fresh, td_error
from _propositions_estimators import (
    Advantages,
    Samples,
    batches,
    flat,
    gradients,
    independent_deviations,
    node_deviations,
    per_sample,
    per_turn,
    samples_of,
)
from _propositions_statistics import bias, holm, interval, resampled, slopes, total_variance
from _propositions_team import Array, Team, credited, rows_of

from colearn.contract import Rollout
from colearn.contract.seeding import derive_seed
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.advantage.raw_return import RawReturn
from colearn.rollout.shapes import Chain, Cross, KaryTree, Parallel

RESULTS = Path(__file__).parent / "results" / "propositions"
LEVELS = (1, 2, 4, 8)
"""K."""
CELLS = (("climbing", 1), ("two_step", 2), ("dec_tiger", 1), ("dec_tiger", 2), ("dec_tiger", 3))
CRITIC_CELLS = (("dec_tiger", 1), ("dec_tiger", 2), ("dec_tiger", 3), ("vault", 6))
STEPS = {"climbing": 30_000, "two_step": 30_000, "dec_tiger": 80_000, "vault": 90_000}
"""Joint actions per measurement; at horizon 1 half of it."""
TD_CHAINS = (1_250, 5_000)
"""Chains that a critic is fitted to; the last is the one that is used."""
FEWEST_TREES = 400
FEWEST_GROUPS = 20
GROUP = 4
"""K of MAGRPO where it is compared with the critics (the paper's, for short horizons)."""
MOST_CROSS = 5_000
"""Joint actions of a Cartesian tree that is still rolled out to count its calls."""

RETURN, MEAN = "return", "group mean"
ADVANTAGES: dict[str, Advantages] = {
    RETURN: lambda trees, places: RawReturn()(credited(trees)),
    MEAN: lambda trees, places: GroupMean()(credited(trees)),
}


def joint_actions(samples: int, horizon: int) -> int:
    """Of a full tree: K + K^2 + ... + K^H."""
    return sum(samples**turn for turn in range(1, horizon + 1))


def steps(problem: str, horizon: int, share: float) -> float:
    """Joint actions to spend on one measurement."""
    return share * STEPS[problem] * (0.5 if horizon == 1 else 1.0)


def measured(
    team: Team,
    shape: Rollout,
    cost: int,
    number: int,
    advantages: Mapping[str, Advantages],
    seed: int,
) -> dict[str, dict[str, Array]]:
    """By estimator: `paper` and `library`, a gradient for each tree, and `nodes`, the squared
    deviations of `node_deviations`. `cost` is a tree's joint actions."""
    estimates: dict[str, dict[str, list[Array]]] = {name: {} for name in advantages}
    for trees, places, samples in batches(team, shape, number, cost + 1, seed=seed):
        for name, advantage in advantages.items():
            worth = flat(samples, advantage(trees, places), team.agents)
            parts = {
                "paper": gradients(team, samples, worth, per_turn(samples, team.horizon)),
                "library": gradients(team, samples, worth, per_sample(samples)),
                "nodes": node_deviations(team, samples, worth),
            }
            for key, value in parts.items():
                estimates[name].setdefault(key, []).append(value)
    return {n: {k: np.concatenate(v) for k, v in by.items()} for n, by in estimates.items()}


def sampling(problem: str, horizon: int, share: float, seed: int) -> dict[str, Any]:
    """Propositions 4.1 and 4.2 on one problem: every K, and chains that share nothing."""
    team = Team(problem, horizon)
    seed = derive_seed(seed, "sampling", problem, horizon)
    size = float(team.gradient @ team.gradient)
    cells, draws, blocks = [], [], []
    for level in LEVELS:
        cost = joint_actions(level, horizon)
        trees = int(max(share * FEWEST_TREES, steps(problem, horizon, share) / cost))
        chosen = {k: v for k, v in ADVANTAGES.items() if k == RETURN or level > 1}
        shape = KaryTree(level)
        estimates = measured(team, shape, cost, trees, chosen, seed + level)
        raw = estimates[RETURN]
        variance = resampled(total_variance(raw["paper"]), seed)
        tested = team.tested(shape, trees)
        cell: dict[str, Any] = {
            "K": level,
            "bias": asdict(bias(raw["paper"], team.gradient, tested, seed)),
            "library": asdict(bias(raw["library"], team.gradient, tested, seed)),
            "library_cosine_exact": library_cosine(team, level),
            "variance": interval(variance),
            "cost": interval(variance * cost / size),
        }
        if level > 1:
            control = estimates[MEAN]["paper"]
            cell["control"] = asdict(bias(control, team.gradient, tested, seed))
            # Its expectation is (K - 1) / K of the gradient: scaled to the same length.
            scale = (level / (level - 1)) ** 2
            cell["cost_group_mean"] = interval(
                resampled(total_variance(control), seed) * scale * cost / size
            )
        cells.append(cell)
        draws.append(resampled(raw["nodes"], seed + 10 * level))
        blocks.append(_blocks(team, raw["paper"], seed + 20 * level))
    number = int(steps(problem, horizon, share) / horizon)
    chains = _chains(team, number, seed + 99)
    return {
        "problem": problem,
        "horizon": horizon,
        "value": team.exact.value,
        "gradient_norm": size**0.5,
        "cells": cells,
        "turns": [_turn(team, turn, draws, blocks, chains) for turn in range(horizon)],
    }


def library_cosine(team: Team, level: int) -> float:
    """Between the gradient and what the library's weights make of it: turn t times K^(t+1) / N."""
    share = float(level) ** (team.turns + 1) / joint_actions(level, team.horizon)
    bent = share * team.gradient
    return float(bent @ team.gradient / np.sqrt((bent @ bent) * (team.gradient @ team.gradient)))


def _blocks(team: Team, estimates: Array, seed: int) -> Array:
    """The variance of each turn's part of the whole estimate, and bootstrap draws of it."""
    by_turn = [total_variance(estimates[:, team.turns == t]) for t in range(team.horizon)]
    return resampled(np.stack(by_turn, axis=1), seed)


def _chains(team: Team, number: int, seed: int) -> tuple[Samples, dict[str, Array]]:
    """Chains all at once, with their returns."""
    trees, _ = team.play(Chain(), number, seed=seed)
    samples = samples_of(team, trees, [rows_of(team, tree) for tree in trees])
    return samples, flat(samples, RawReturn()(credited(trees)), team.agents)


def _turn(
    team: Team,
    turn: int,
    draws: Sequence[Array],
    blocks: Sequence[Array],
    chains: tuple[Samples, Mapping[str, Array]],
) -> dict[str, Any]:
    """Proposition 4.2 at one turn: variances over that of K = 1, next to the predicted ratio."""
    draws_of_turn = [draw[:, turn] for draw in draws]
    tree = [interval(draw / draws_of_turn[0]) for draw in draws_of_turn]
    independent = []
    for level in LEVELS:
        size = level ** (team.horizon - turn)
        squares = independent_deviations(team, *chains, turn, size)
        enough = len(squares) >= FEWEST_GROUPS
        independent.append(
            interval(resampled(squares, level) / draws_of_turn[0]) if enough else None
        )
    return {
        "turn": turn,
        "variance_of_one": interval(draws_of_turn[0]),
        "predicted": [level ** (turn - team.horizon) for level in LEVELS],
        "tree": tree,
        "independent": independent,
        "whole_estimate": [interval(block[:, turn] / blocks[0][:, turn]) for block in blocks],
        "slope": interval(slopes(LEVELS, draws_of_turn)),
        "slope_predicted": turn - team.horizon,
    }


def critics(problem: str, horizon: int, share: float, seed: int) -> dict[str, Any]:
    """Eq. 2 and Eq. 4 on chains, with three critics each, and MA-REINFORCE and MAGRPO beside."""
    team = Team(problem, horizon)
    seed = derive_seed(seed, "critics", problem, horizon)
    size = float(team.gradient @ team.gradient)
    kinds: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    data, _ = team.play(Chain(), TD_CHAINS[-1], seed=seed + 7)
    for name, central in (("CC", True), ("DC", False)):
        kinds[f"{name} exact"] = exact(team, central)
        errors[name] = {}
        for chains in TD_CHAINS:
            critic, errors[name][chains] = converged(team, central, data[:chains])
        kinds[f"{name} converged"] = critic
        kinds[f"{name} fresh"] = fresh(team, central)
    advantages = {RETURN: ADVANTAGES[RETURN]} | {n: td_error(c) for n, c in kinds.items()}
    number = int(steps(problem, horizon, share) / horizon)
    measurements = measured(team, Chain(), horizon, number, advantages, seed)
    tested = team.tested(Chain(), number)
    rows = []
    for name, parts in measurements.items():
        target = team.gradient if name == RETURN else expected_gradient(kinds[name])
        gap = target - team.gradient
        rows.append(
            {
                "estimator": "MA-REINFORCE, K=1" if name == RETURN else name,
                "bias_exact": float(np.sqrt((gap @ gap) / size)),
                "bias": asdict(bias(parts["paper"], team.gradient, tested, seed)),
                "expectation_p": bias(parts["paper"], target, tested, seed).norm_p,
                "cost": interval(resampled(total_variance(parts["paper"]), seed) * horizon / size),
            }
        )
    shape, cost = Parallel(GROUP), GROUP * horizon
    number = int(steps(problem, horizon, share) / 2 / cost)
    group = measured(team, shape, cost, number, {MEAN: ADVANTAGES[MEAN]}, seed + 1)
    estimates = group[MEAN]["paper"] * GROUP / (GROUP - 1)
    tested = team.tested(shape, number)
    rows.append(
        {
            "estimator": f"MAGRPO, parallel({GROUP}), rescaled",
            "bias_exact": 0.0,
            "bias": asdict(bias(estimates, team.gradient, tested, seed)),
            "cost": interval(resampled(total_variance(estimates), seed) * cost / size),
        }
    )
    return {"problem": problem, "horizon": horizon, "rows": rows, "critic_error": errors}


def calls() -> list[dict[str, Any]]:
    """Proposition 4.3: actions sampled in one episode, counted and by formula."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for agents in (1, 2, 3):
            file = Path(folder) / f"{agents}.dpomdp"
            file.write_text(trivial(agents))
            for horizon in (1, 2, 3):
                team = Team("", horizon, file=str(file))
                for level in LEVELS:
                    joint = level**agents
                    expected: dict[Rollout, int] = {
                        KaryTree(level): agents * joint_actions(level, horizon),
                        Parallel(level): agents * level * horizon,
                        Chain(): agents * horizon,
                    }
                    if joint_actions(joint, horizon) <= MOST_CROSS:
                        histories = sum(joint**turn for turn in range(horizon))
                        expected[Cross(level)] = agents * level * histories
                    for shape, number in expected.items():
                        _, counts = team.play(shape, 1, seed=0)
                        rows.append(
                            {
                                "shape": type(shape).__name__,
                                "n": agents,
                                "K": level,
                                "H": horizon,
                                "formula": number,
                                "counted": counts.generations,
                            }
                        )
    return rows


def trivial(agents: int) -> str:
    """A .dpomdp file with one state, two actions and one observation for every agent."""
    joint = " ".join("*" * agents)
    return "\n".join(
        [
            f"agents: {agents}",
            "discount: 1",
            "values: reward",
            "states: only",
            "start: only",
            "actions:",
            *["left right"] * agents,
            "observations:",
            *["nothing"] * agents,
            f"T: {joint} : only : only : 1",
            f"O: {joint} : only : {' '.join(['nothing'] * agents)} : 1",
            f"R: {joint} : only : * : * : 1",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder; results/propositions unless --quick")
    options = parser.parse_args()
    share = 0.1 if options.quick else 1.0
    out = options.out or (None if options.quick else RESULTS)

    from _propositions_report import tables, write_figure

    started = time.perf_counter()
    results: dict[str, Any] = {"sampling": [], "critics": []}
    for problem, horizon in CELLS:
        results["sampling"].append(sampling(problem, horizon, share, options.seed))
        print(f"{problem} H={horizon}: {time.perf_counter() - started:.0f} s", flush=True)
    cells = [cell for part in results["sampling"] for cell in part["cells"]]
    for kind in ("max_t_p", "norm_p"):
        for cell, p in zip(cells, holm([c["bias"][kind] for c in cells]), strict=True):
            cell["bias"][f"{kind}_holm"] = p
    for problem, horizon in CRITIC_CELLS:
        results["critics"].append(critics(problem, horizon, share, options.seed))
        print(f"critics {problem} H={horizon}: {time.perf_counter() - started:.0f} s", flush=True)
    results["calls"] = calls()
    results["seconds"] = round(time.perf_counter() - started)
    print(tables(results))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "propositions.json").write_text(json.dumps(_rounded(results), indent=1) + "\n")
        write_figure(results, out / "propositions.png")


def _rounded(value: Any) -> Any:
    """Five digits are more than the samples know."""
    if isinstance(value, dict):
        return {str(key): _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
