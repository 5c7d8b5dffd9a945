"""Learning of colearn and of CoMLRL 1.4.3 from the same weights, with the same settings.

    pip install --no-deps comlrl==1.4.3 && pip install openai
    python benchmarks/learning_vs_comlrl.py FOLDER    # the runs that FOLDER lacks, then the table

A run keeps its actors' weights at nine points. Afterwards one team of colearn plays the held-out
items with each of them, whoever trained them. Seconds are those of training alone.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from vs_comlrl import PEERS, PeerTask

from colearn.config import Config
from colearn.contract import NetworkKey
from colearn.runs.over_seeds import estimate
from colearn.training.evaluation.evaluate import evaluate_run
from colearn.training.experience import TrainingPoint
from colearn.training.loop import Experiment

TASKS: dict[str, dict[str, Any]] = {
    "two_step": {
        **{"name": "dpomdp", "problem": "two_step", "horizon": 2, "opening": "start"},
        **{"turn": "{observation}", "reward_scale": 0.1, "penalty": -10.0},
    },
    "tldr": {"name": "tldr", "data": "generated", "prompt": "compact", "words": [2, 6]},
}
TURNS, TOKENS = {"two_step": 2, "tldr": 1}, {"two_step": 2, "tldr": 7}
SYSTEMS = ("comlrl", "colearn")
SEEDS, STEPS, POINTS, K = range(5), 640, 8, 4
RATE, CRITIC_RATE = 1e-3, 3e-3
SHARE = 0.5  # of the way from the first return to the best mean at the end: the threshold


class Run(NamedTuple):
    task: str
    method: str
    system: str
    seed: int


def config_of(run: Run) -> Config:
    """All that both have as a setting is the peer's. A step has 16 joint actions, MAGRPO's in two
    turns 40."""
    model = {"path": "embedded-tiny", "weight_decay": 0.01, "max_grad_norm": math.inf}
    algorithm: dict[str, Any] = {"name": run.method}
    if run.method == "magrpo":
        algorithm["rollout"] = {"name": "tree", "k": K}
        algorithm["advantage"] = {"normalize_std": True, "equal_turns": True}
    else:
        algorithm["advantage"] = {"normalize": True}
        algorithm["value_loss"] = {"coefficient": 0.6, "frozen_targets": True}
        algorithm["critic"] = {"global_info": False}
    critic = {"learning_rate": CRITIC_RATE, "baseline": "none"}
    critic["epochs"] = 2 if run.method == "collm_cc" else 1  # the peer: one for each agent
    items = (4 if run.method == "magrpo" else 16) // TURNS[run.task]
    config = {
        "task": TASKS[run.task],
        "algorithm": algorithm,
        "models": {"*": {**model, "learning_rate": RATE}},
        "agents": {"*": {"sampling": {"max_tokens": TOKENS[run.task], "temperature": 1.0}}},
        "critic": None if run.method == "magrpo" else model | critic,
        "train": {"environment_steps": STEPS, "episodes": items},
        "evaluation": {"exact": run.task == "two_step", "repeats": 3},
        "run": {"seed": run.seed, "device": "cpu"},
    }
    return Config.model_validate(config)


def peer(run: Run, experiment: Experiment) -> tuple[list[Any], Callable[[], int]]:
    """Its actors, and what makes its next steps and returns the joint actions so far: a call of
    `train`, with a step for each turn, on the items of as many steps of colearn."""
    from transformers import AutoTokenizer

    def ask(text: str) -> str:
        told = [{"role": "user", "content": text}]
        return str(tokenizer.apply_chat_template(told, tokenize=False, add_generation_prompt=True))

    torch.manual_seed(run.seed)
    random.seed(run.seed)
    (path,) = set(experiment.team.folders.values())
    tokenizer = AutoTokenizer.from_pretrained(path)
    task = PeerTask(experiment.team.run.task, [], ask, tokenizer.eos_token)
    grouped, turns = run.method == "magrpo", TURNS[run.task]
    settings: dict[str, Any] = {"num_turns": turns, "max_new_tokens": TOKENS[run.task], "top_k": 0}
    settings |= {"agent_learning_rate": RATE, "eval_interval": 0, "rollout_buffer_size": 10**6}
    settings |= {"num_generations": K} if grouped else {"critic_learning_rate": CRITIC_RATE}
    trainer = task.trainer(run.method, path, tokenizer, **settings)
    drawn = itertools.count(0, experiment.experience.count)

    def advance() -> int:
        points = [TrainingPoint(0, next(drawn), 0.0) for _ in range(turns)]
        task.items = [item for point in points for item in experiment.experience.draw(point)]
        trainer.train_dataset = [{"prompt": str(n)} for n in range(len(task.items))]
        trainer.train()
        return int(trainer.env_step)

    return [agent if grouped else agent.model for agent in trainer.agents], advance


def actors(experiment: Experiment) -> list[Any]:
    networks = experiment.team.networks
    return [networks[NetworkKey("actor", a)].base.causal for a in experiment.team.run.task.agents]


def colearn_step(experiment: Experiment) -> int:
    experiment.step()
    return experiment.progress.environment_steps


def finished(run: Run) -> list[dict[str, float]]:
    """The points of a run."""
    torch.set_num_threads(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Experiment(config_of(run), Path(folder) / "run") as experiment,
    ):
        experiment.start()
        models, advance = actors(experiment), lambda: colearn_step(experiment)
        if run.system == "comlrl":
            models, advance = peer(run, experiment)
        points: list[dict[str, float]] = []
        kept, steps, spent = [], 0, np.zeros(2)
        while True:
            if steps >= len(points) * STEPS / POINTS:
                points.append({"joint_actions": steps, "cpu": spent[0], "wall": spent[1]})
                kept.append(deepcopy([model.state_dict() for model in models]))
            if steps >= STEPS:
                break
            spent -= time.process_time(), time.perf_counter()
            steps = advance()
            spent += time.process_time(), time.perf_counter()
        for point, states in zip(points, kept, strict=True):
            for model, state in zip(actors(experiment), states, strict=True):
                model.load_state_dict(state)
            experiment.team.publish()
            metrics = evaluate_run(experiment.team, experiment.exact, experiment.processes).metrics
            point["return"] = metrics.get("exact_return", metrics["return"])
    return points


def shown(values: Sequence[float], digits: int = 3) -> str:
    told = estimate(values)
    if told is None or told.low is None or told.high is None:
        return "-"
    return f"{told.mean:.{digits}f} [{told.low:.{digits}f}, {told.high:.{digits}f}]"


def report(found: Mapping[Run, Sequence[Mapping[str, float]]]) -> Iterator[str]:
    """A row for each task and method, of the seeds that both have."""
    yield "| | CoMLRL | colearn | difference | of means | threshold at | CPU s | ratio | of wall |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for task, method in itertools.product(TASKS, PEERS):
        known = {run: points for run, points in found.items() if run.task == task}
        kinds = itertools.product({run.method for run in known}, {run.system for run in known})
        ends = [[p[-1]["return"] for r, p in known.items() if r[1:3] == kind] for kind in kinds]
        start = statistics.mean(points[0]["return"] for points in known.values())
        level = start + SHARE * (max(map(statistics.mean, filter(None, ends))) - start)
        both = [[found.get(Run(task, method, name, n), []) for name in SYSTEMS] for n in SEEDS]
        pairs = [pair for pair in both if all(pair)]
        last = [[points[-1] for points in pair] for pair in pairs]
        means = [[statistics.mean(at["return"] for at in points) for points in p] for p in pairs]
        places = []
        for side in zip(*pairs, strict=True):
            high = [[at["joint_actions"] for at in p if at["return"] >= level] for p in side]
            got = [steps[0] for steps in high if steps]
            places.append(f"{statistics.mean(got):.0f} ({len(got)})" if got else "none")
        cells = [
            f"{task} {method}, {len(pairs)} seeds",
            *(shown([pair[n]["return"] for pair in last]) for n in (0, 1)),
            shown([own["return"] - peer["return"] for peer, own in last]),
            shown([own - peer for peer, own in means]),
            f"{level:.2f}: {', '.join(places)}",
            ", ".join(shown([pair[n]["cpu"] for pair in last], 1) for n in (0, 1)),
            *(shown([peer[key] / own[key] for peer, own in last], 1) for key in ("cpu", "wall")),
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    log = Path(sys.argv[1]) / "runs.jsonl"
    log.touch()
    found: dict[Run, list[dict[str, float]]] = {}
    for run in map(json.loads, log.read_text().splitlines()):
        found[Run(*(run[name] for name in Run._fields))] = run["points"]
    for seed, task, method, system in itertools.product(SEEDS, TASKS, PEERS, SYSTEMS):
        if (asked := Run(task, method, system, seed)) not in found:
            found[asked] = finished(asked)
            with log.open("a") as file:
                file.write(json.dumps({**asked._asdict(), "points": found[asked]}) + "\n")
            print(asked, found[asked][-1], flush=True)
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
