"""Private stakes: joint actions to 90% for critics and groups, by team size.

    python benchmarks/stakes.py --out stakes        # resumable, one core, ten seeds, 25 minutes
    python benchmarks/stakes.py --out stakes --report

One turn. Agent i sees its stake s_i, 1 or 9, and a key; the team earns the sum of the stakes of the
agents that give the right one of two answers for their key. What the others earn is noise to agent
i: V of the joint history takes out its mean, a counterfactual Q all of it. The value reported is
the share of the largest expected reward that sampled play earns, over `--episodes` held-out items.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from colearn.contract import (
    Advantage,
    AgentValues,
    DecPOMDP,
    Episodes,
    NodeAdvantages,
)
from colearn.contract.types import Outcome, Tree
from colearn.methods.advantage.finish import normalized

STAKES, KEYS, ANSWERS = {"one": 1, "nine": 9}, ("red", "blue"), ("left", "right")
METHODS: dict[str, dict[str, Any]] = {
    "coma": {"name": "coma", "advantage": {"normalize": True}},
    "collm_cc": {"name": "collm_cc", "advantage": {"lam": 1.0, "normalize": True}},
    "collm_dc": {"name": "collm_dc", "advantage": {"lam": 1.0, "normalize": True}},
    "magrpo": {"name": "magrpo", "advantage": {"name": "group_mean", "normalize": True}},
    "known": {
        "name": "mareinforce",
        "rollout": {"name": "counterfactual_chain"},
        "advantage": {"name": "stakes:KnownParts"},
    },
}
"""`known` is COMA with the task's rewards for its critic: what no learned Q can exceed."""
TEAMS = (2, 4, 8)
RATES = {
    4: {"coma": 2e-3, "collm_cc": 4e-3, "collm_dc": 4e-3, "magrpo": 4e-3},
    8: {"coma": 4e-3, "collm_cc": 4e-3, "collm_dc": 4e-3, "magrpo": 4e-3},
}
"""Each method's better rate of the actors on the tuning seeds 100 and 101, by size of the team."""
GROUP = 4
"""Candidates per item of `magrpo`, each a joint action."""


@dataclass(frozen=True)
class Dealt:
    """Each agent's stake and key, and who was right."""

    stakes: tuple[str, ...]
    keys: tuple[str, ...]
    right: tuple[bool, ...] = ()


class Stakes(DecPOMDP[int, Dealt]):
    """The team of n agents; items are numbers, and the deal is drawn from the episode's seed."""

    horizon = 1

    def __init__(self, n: int = 2) -> None:
        self.agents = tuple(f"agent{number}" for number in range(n))

    def items(self, split: str) -> Sequence[int]:
        return range(4096) if split == "train" else range(4096, 4096 + 256)

    def reset(self, item: int, rng: np.random.Generator) -> Dealt:
        dealt = np.random.default_rng(item)
        return Dealt(
            tuple(str(dealt.choice(list(STAKES))) for _ in self.agents),
            tuple(str(dealt.choice(KEYS)) for _ in self.agents),
        )

    def observe(self, state: Dealt, agent: str) -> str:
        number = self.agents.index(agent)
        return f"stake {state.stakes[number]} key {state.keys[number]}"

    def step(
        self, state: Dealt, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Dealt]:
        right = tuple(
            is_right(actions[agent], key)
            for agent, key in zip(self.agents, state.keys, strict=True)
        )
        earned = sum(STAKES[s] * ok for s, ok in zip(state.stakes, right, strict=True))
        return Outcome(state=Dealt(state.stakes, state.keys, right), reward=float(earned))

    def metrics(self, state: Dealt) -> Mapping[str, float]:
        stakes = [STAKES[stake] for stake in state.stakes]
        earned = sum(s * ok for s, ok in zip(stakes, state.right, strict=True))
        return {"share": earned / (5.0 * len(stakes))}

    def legal_action(self, state: Dealt, agent: str, rng: np.random.Generator) -> str:
        return str(rng.choice(ANSWERS))


@dataclass(frozen=True, kw_only=True)
class KnownParts(Advantage):
    """COMA's advantage with the exact Q: what the agent's own answer earned, less the mean of its
    further answers. Normalised per agent over the iteration."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        return normalized([self._advantages(episode) for episode in episodes])

    def _advantages(self, episode: Tree[Any]) -> NodeAdvantages:
        root, after = episode.nodes
        advantages = {}
        for agent, action in after.actions.items():
            _, stake, _, key = root.observations[agent].text.split()
            others = [other.text for other in after.alternatives[agent]]
            mean = sum(is_right(text, key) for text in others) / len(others)
            advantages[agent] = STAKES[stake] * (is_right(action.text, key) - mean)
        return {}, advantages


def is_right(answer: str, key: str) -> bool:
    return answer.strip() == ANSWERS[KEYS.index(key)]


def config_of(method: str, team: int, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """A user would write it as YAML. An iteration and an actor's step are `options.batch` joint
    actions."""
    path = f"embedded-tiny:{seed}"
    algorithm = json.loads(json.dumps(METHODS[method]))
    if options.epochs > 1:
        algorithm["loss"] = {"ratio": "token", "clip": options.clip or None}
    if options.kl:
        algorithm["loss"] = algorithm.get("loss", {}) | {"kl": options.kl}
    critic = method in ("coma", "collm_cc", "collm_dc")
    if critic:
        algorithm["value_loss"] = {"rescale": True, "frozen_targets": True}
    return {
        "task": {"name": "stakes:Stakes", "n": team},
        "algorithm": algorithm,
        "models": {
            "*": {
                "path": path,
                "learning_rate": options.rate or RATES[team][method],
                "schedule": options.schedule,
            }
        },
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": {
            "path": f"{options.critic}:{seed}",
            "learning_rate": options.critic_rate,
            "head_learning_rate": 1e-2,
            "epochs": options.epochs,
            "minibatch": min(options.batch, options.critic_minibatch),
            "warmup_iterations": options.warmup,
            "baseline": "none",
        }
        if critic
        else None,
        "train": {
            "environment_steps": options.steps,
            "episodes": options.batch // GROUP if method == "magrpo" else options.batch,
            "epochs": options.actor_epochs or options.epochs,
            "minibatch": options.batch,
        },
        "evaluation": {"every": options.every, "episodes": options.episodes, "transcripts": 0},
        "run": {"seed": seed, "device": "cpu"},
    }


def run(out: Path, method: str, team: int, seed: int, options: argparse.Namespace) -> None:
    """One run's learning curve as a JSON line: joint actions, share and explained variance."""
    from colearn.config import Config
    from colearn.runs.record import open_run
    from colearn.training.loop import Experiment

    folder = out / "runs" / f"{method}-{team}-{seed}"
    settings = config_of(method, team, seed, options)
    started = time.process_time()
    Experiment(Config.model_validate(settings), folder).run()
    lines = open_run(folder).lines()
    curve = [(n.environment_steps, n.metrics["share"]) for n in lines if n.kind == "evaluation"]
    key = "critic/explained_variance"
    told = [n.metrics[key] for n in lines if key in n.metrics]
    updates = [n.metrics for n in lines if n.kind == "update"]
    record = {
        "method": method,
        "team": team,
        "seed": seed,
        "curve": curve,
        "explained_variance": statistics.mean(told[len(told) // 2 :]) if told else None,
        "update_ms": round(1000 * statistics.median(m["seconds/update"] for m in updates)),
        "rollout_ms": round(1000 * statistics.median(m["seconds/rollout"] for m in updates)),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    with (out / "runs.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


def reached(curve: Sequence[Sequence[float]], share: float) -> float | None:
    """Joint actions at the first of two evaluations in a row that reach `share`."""
    for (steps, value), (_, after) in pairwise(curve):
        if min(value, after) >= share:
            return steps
    return None


def report(out: Path) -> str:
    runs = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    lines = [
        "| agents | method | seeds | joint actions to 90%: median (each) | mean share "
        "| share at the end | explained variance | ms of an update | of a rollout |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for team, method in product(TEAMS, METHODS):
        team_runs = [r for r in runs if (r["team"], r["method"]) == (team, method)]
        if not team_runs:
            continue
        times = [reached(r["curve"], 0.9) for r in team_runs]
        middle = statistics.median(float("inf") if t is None else t for t in times)
        each = " ".join("-" if t is None else f"{t:.0f}" for t in times)
        told = [r["explained_variance"] for r in team_runs]
        cells = (
            team,
            method,
            len(team_runs),
            f"{'not reached' if middle == float('inf') else round(middle)} ({each})",
            interval([statistics.mean(share for _, share in r["curve"]) for r in team_runs]),
            interval([r["curve"][-1][1] for r in team_runs]),
            "-" if None in told else interval(told),
            round(statistics.median(r["update_ms"] for r in team_runs)),
            round(statistics.median(r["rollout_ms"] for r in team_runs)),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def interval(values: Sequence[float]) -> str:
    """Mean and Student's 95% interval over seeds."""
    from colearn.runs.over_seeds import estimate

    found = estimate(values)
    assert found is not None
    bounds = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.mean:.2f}{bounds}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2048, help="joint actions of a run")
    parser.add_argument("--batch", type=int, default=64, help="joint actions of an iteration")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--clip", type=float, default=0.2, help="of several epochs; 0: none")
    parser.add_argument("--rate", type=float, help="learning rate of the actors; else RATES")
    parser.add_argument("--schedule", default="constant", help="of the actors' rate")
    parser.add_argument("--actor-epochs", type=int, help="of the actors alone; else --epochs")
    parser.add_argument("--critic-minibatch", type=int, default=32, help="joint actions")
    parser.add_argument("--kl", type=float, default=0.02, help="penalty to the initial policy")
    parser.add_argument("--critic", default="embedded-tiny", help="the critic's network")
    parser.add_argument("--critic-rate", type=float, default=5e-3)
    parser.add_argument("--warmup", type=int, default=0, help="iterations of the critic alone")
    parser.add_argument("--every", type=int, default=1, help="iterations between evaluations")
    parser.add_argument("--episodes", type=int, default=256, help="of an evaluation")
    parser.add_argument("--methods", nargs="+", default=list(RATES[4]))
    parser.add_argument("--teams", nargs="+", type=int, default=list(RATES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.report:
        print(report(options.out))
        return
    path = options.out / "runs.jsonl"
    done = set()
    if path.exists():
        lines = map(json.loads, path.read_text().splitlines())
        done = {(r["method"], r["team"], r["seed"]) for r in lines}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, team, method in product(seeds, options.teams, options.methods):
        if (method, team, seed) not in done:
            run(options.out, method, team, seed, options)
    print(report(options.out))


if __name__ == "__main__":
    main()
