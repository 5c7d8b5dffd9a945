"""Ten problems that nobody has tuned on, each trained once by the recipe of benchmarks/optima.py.

    python benchmarks/breadth.py --out benchmarks/results/breadth        # resumable
    python benchmarks/breadth.py --out benchmarks/results/breadth --report

What a run needs beside the recipe follows from the problem by rule: rewards are scaled by one over
the distance from uniform play to the optimum, a rejected reply earns as much less than uniform play
as the optimum earns more, or the worst reward in every turn if that is less, the budget is 6,400
joint actions, 12,800 with four turns, and an iteration has 128; `--times N` multiplies both. Values
are exact, at the temperatures 0.7 and 0.2 and greedy.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from _breadth_problems import BREADTH
from _optima_problems import PROBLEMS, Problem
from optima import Run, config_of

from colearn.report.show import show_number
from colearn.tabular.exact_value import evaluate, uniform
from colearn.tabular.histories import JointHistories
from colearn.tabular.reader import parse_dpomdp
from colearn.tabular.search import best_joint_policy

HOT = ("agents.*.sampling.temperature=0.7", "agents.*.sampling.anneal=null")


def write_problem(name: str, out: Path, times: int = 1) -> tuple[Problem, dict[str, float]]:
    """The problem with its file in `out`, and its exact reference values."""
    entry = BREADTH[name]
    text = entry.make().text()
    path = out / "problems" / f"{name}.dpomdp"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    model = parse_dpomdp(text, str(path))
    histories = JointHistories(model, entry.horizon)
    exact = {
        "optimum": best_joint_policy(model, entry.horizon).value,
        "open_loop": best_joint_policy(model, entry.horizon, information="open_loop").value,
        "uniform": evaluate(histories, uniform(histories)).value,
    }
    gap = exact["optimum"] - exact["uniform"]
    steps = 12_800 if entry.horizon > 3 else 6_400
    # above the second, a rejected reply can earn more than play, a team more than the optimum
    penalty = min(exact["uniform"] - gap, entry.horizon * float(model.reward.min()))
    problem = Problem(
        name,
        entry.horizon,
        times * steps,
        times * 128,
        1 / gap,
        penalty,
        file=str(path.absolute()),
    )
    return problem, exact


def train(name: str, method: str, seed: int, out: Path, times: int) -> dict[str, Any]:
    """One run by the recipe, and the exact values of its last weights."""
    from colearn.config import Config
    from colearn.experiment.assemble import assemble
    from colearn.experiment.evaluation.evaluate import evaluate_weights
    from colearn.experiment.loop import Experiment
    from colearn.record import open_run

    problem, exact = write_problem(name, out, times)
    PROBLEMS[name] = problem
    folder = out / "runs" / f"{name}-{method}-{seed}"
    settings = config_of(Run(method, name, "recipe", seed, problem.steps))
    started = time.process_time()
    Experiment(Config.model_validate(settings), folder).run()
    record = open_run(folder)
    checkpoint = record.checkpoints.choose("last")
    parts = assemble(record.config(HOT))
    hot = evaluate_weights(parts, {key: checkpoint.path / str(key) for key in parts.host.learners})
    told = [
        line.metrics["critic/explained_variance"]
        for line in record.lines()
        if line.metrics.get("critic/explained_variance") is not None
    ]
    return {
        "problem": name,
        "horizon": problem.horizon,
        "method": method,
        "seed": seed,
        "joint_actions": problem.steps,
        **exact,
        "hot": hot["exact_return"] / problem.scale,
        "cold": hot["exact_return_cold"] / problem.scale,
        "greedy": hot["exact_return_greedy"] / problem.scale,
        "rejected": hot["exact_rejected"],
        "explained_variance": sorted(told)[len(told) // 2] if told else None,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def share(row: dict[str, Any], value: float) -> float:
    """Of the way from uniform play to the optimum."""
    return (value - row["uniform"]) / (row["optimum"] - row["uniform"])


def report(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| problem | turns | method | uniform | open loop | optimum | at 0.7 | at 0.2 | greedy | "
        "explained variance |",
        "|---" * 10 + "|",
    ]
    for row in rows:
        cells = [show_number(row[key]) for key in ("uniform", "open_loop", "optimum")]
        cells += [
            f"{show_number(row[key])} ({share(row, row[key]):.0%})"
            for key in ("hot", "cold", "greedy")
        ]
        told = row["explained_variance"]
        cells.append("-" if told is None else show_number(told))
        lines.append(
            f"| {row['problem']} | {row['horizon']} | {row['method']} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--report", action="store_true", help="print the table of finished runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=1, help="of the rule's joint actions")
    parser.add_argument("--methods", nargs="+", default=["collm_cc"])
    parser.add_argument("--problems", nargs="+", choices=BREADTH, default=list(BREADTH))
    options = parser.parse_args()
    path = options.out / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["problem"], row["method"], row["seed"]) for row in rows}
    for method in options.methods if not options.report else ():
        for name in options.problems:
            if (name, method, options.seed) not in done:
                rows.append(train(name, method, options.seed, options.out, options.times))
                with path.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(report(rows[-1:]).splitlines()[-1], flush=True)
    print(report(rows))


if __name__ == "__main__":
    main()
