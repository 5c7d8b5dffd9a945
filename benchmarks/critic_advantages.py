"""Counterfactual advantages of kept critics on private stakes, beside exact ones, by stage of play.

    python benchmarks/critic_advantages.py transfer/critic-8 transfer/critic-8-paired \
        --run transfer/runs/none8-frozen1-share0-batch32-8-950

The runs recorded their episodes (`train.record`). What an own action adds is known here: the
agent's stake if it is right, else 0. `D` is what a critic thinks it adds, Q of the right answer
less Q of the wrong one, which should be 9 or 1. The advantages have four further answers of the
stage's own policy, as COMA's do. `N` is the variance of the gradient over its squared norm, in
joint actions: how many are needed until the noise is as large as the gradient; `cos` is the angle
of the mean gradient to the exact one. Both are of advantages normalised by agent.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stakes import ANSWERS, KEYS, STAKES

import colearn
from colearn.record import open_run
from colearn.record.recorded_tree import tree_of
from colearn.types import Action, Tree
from colearn.value_model.loaded import LoadedCritic

Array = NDArray[np.float64]
STAGES = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 40))
"""First and last iterations."""


class Stage:
    """Joint actions of one stage of play; arrays are [joint actions, agents]."""

    def __init__(self, trees: Sequence[Tree[Any]]) -> None:
        self.trees = [_with_both_answers(tree) for tree in trees]
        agents = trees[0].agents
        told = [
            [tree.nodes[0].observations[agent].text.split() for agent in agents] for tree in trees
        ]
        said = [[tree.nodes[1].actions[agent].text.strip() for agent in agents] for tree in trees]
        self.stake = np.array([[STAKES[words[1]] for words in row] for row in told], dtype=float)
        self.key = np.array([[KEYS.index(words[3]) for words in row] for row in told])
        self.right = np.array(
            [
                [text == ANSWERS[key] for text, key in zip(texts, keys, strict=True)]
                for texts, keys in zip(said, self.key, strict=True)
            ],
            dtype=float,
        )
        self.returns = (self.stake * self.right).sum(axis=1)
        self.chance = np.zeros_like(self.right)
        for agent in range(len(agents)):
            for key in range(len(KEYS)):
                at = self.key[:, agent] == key
                self.chance[at, agent] = (self.right[at, agent].sum() + 1) / (at.sum() + 2)
        draws = np.random.default_rng(0).random((*self.right.shape, 4))
        self.others_right = (draws < self.chance[..., None]).mean(axis=2)
        self.exact = self.stake * (self.right - self.others_right)

    def read(self, critic: LoadedCritic) -> tuple[Array, Array]:
        """Q of the right and of the wrong answer, the others' actions unchanged."""
        both = np.array(
            [
                [list(one[agent].alternatives[1]) for agent in tree.agents]  # type: ignore[attr-defined]
                for tree, one in zip(self.trees, critic.values(self.trees), strict=True)
            ]
        )
        right, wrong = (
            np.take_along_axis(both, key[..., None], axis=2)[..., 0]
            for key in (self.key, 1 - self.key)
        )
        return right, wrong

    def gradient(self, advantages: Array) -> tuple[Array, float]:
        """By agent and key, the mean gradient of the right answer's logit, and its variance."""
        scaled = (advantages - advantages.mean(axis=0)) / (advantages.std(axis=0) + 1e-6)
        each = scaled * (self.right - self.chance)
        parts = [np.where(self.key == key, each, 0.0) for key in range(len(KEYS))]
        mean = np.concatenate([part.mean(axis=0) for part in parts])
        return mean, float(sum(part.var(axis=0).sum() for part in parts))

    def line(self, name: str, advantages: Array) -> str:
        (mean, variance), (wanted, _) = self.gradient(advantages), self.gradient(self.exact)
        agents = range(advantages.shape[1])
        correlations = [np.corrcoef(advantages[:, i], self.exact[:, i])[0, 1] for i in agents]
        size = float(np.sqrt((advantages**2).mean() / (self.exact**2).mean()))
        norms = float(np.linalg.norm(mean) * np.linalg.norm(wanted))
        return (
            f"| {name} | {np.mean(correlations):.2f} | {min(correlations):.2f} to "
            f"{max(correlations):.2f} | {size:.2f} | {mean @ wanted / norms:.2f} "
            f"| {variance / float(mean @ mean):.1f} |"
        )


def _with_both_answers(tree: Tree[Any]) -> Tree[Any]:
    root, after = tree.nodes
    both = dict.fromkeys(after.actions, tuple(map(Action, ANSWERS)))
    return replace(tree, nodes=(root, replace(after, alternatives=both)))


def describe(stage: Stage, critics: Sequence[Path]) -> list[str]:
    returns = stage.returns
    lines = [
        "| advantage | correlation with the exact one | by agent | norms' ratio | cos | N |",
        "|---|---|---|---|---|---|",
        stage.line("exact", stage.exact),
        stage.line("G", np.broadcast_to(returns[:, None], stage.exact.shape)),
    ]
    notes = []
    for path in critics:
        right, wrong = stage.read(colearn.load_critic(path, device="cpu"))
        own = np.where(stage.right == 1, right, wrong)
        baseline = stage.others_right * right + (1 - stage.others_right) * wrong
        errors, effect = returns[:, None] - own, right - wrong
        by_stake = (
            f"{effect[stage.stake == stake].mean():.1f} ± {effect[stage.stake == stake].std():.1f}"
            for stake in (9, 1)
        )
        notes.append(
            f"{path.name}: explained variance {1 - errors.var() / returns.var():.2f}, R^2 "
            f"{1 - (errors**2).mean() / returns.var():.2f}, action worth "
            f"{1 - errors.var() / (returns[:, None] - baseline).var():.2f}; D of stakes nine and "
            f"one {', '.join(by_stake)}"
        )
        for share in (0.0, 0.5, 1.0):
            mixed = share * own + (1 - share) * returns[:, None]
            lines.append(stage.line(f"{path.name}, critic_share {share:g}", mixed - baseline))
    return [*notes, "", *lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("critics", type=Path, nargs="+")
    parser.add_argument("--run", type=Path, nargs="+", required=True, help="recorded runs")
    parser.add_argument("--most", type=int, default=128, help="joint actions of a stage")
    options = parser.parse_args()
    recorded = [
        (one.iteration, tree_of(one)) for run in options.run for one in open_run(run).trees()
    ]
    for first, last in STAGES:
        trees = [tree for iteration, tree in recorded if first <= iteration <= last]
        stage = Stage(trees[: options.most])
        share = stage.right.mean()
        print(f"## Iterations {first} to {last}: {share:.2f} of the answers are right\n")
        print("\n".join(describe(stage, options.critics)), flush=True)


if __name__ == "__main__":
    main()
