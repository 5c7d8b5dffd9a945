"""One data set and one reward function, trained by TRL's GRPOTrainer and by colearn.

    python benchmarks/trl_dataset.py --seeds 5 --out FOLDER

Both start from the same weights and make as many updates of as many completions at one learning
rate. Printed: the mean training reward by update, with 95% intervals over seeds, and the mean
difference over all updates. The last row is the same data with a team of two agents.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

COLOURS = ("red", "green", "blue", "gold")
PLACES = ("hill", "barn", "lake", "mill", "pond", "road", "tree", "wall")
PROMPTS, GROUP, UPDATES, RATE, LONGEST = 8, 8, 48, 3e-3, 4


def matches(prompts: list[Any], completions: list[Any], colour: list[str], **_: Any) -> list[float]:
    """The user's reward function, with TRL's signature: 1 for the colour of the row."""
    said = [completion[0]["content"].strip() for completion in completions]
    return [float(one == right) for one, right in zip(said, colour, strict=True)]


def write_data(path: Path) -> None:
    """Conversational prompts, as TRL's chat data sets have them."""
    rows = [
        {"prompt": [{"role": "user", "content": f"paint {place} {colour}"}], "colour": colour}
        for place in PLACES
        for colour in COLOURS
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def config(data: Path, seed: int, agents: list[str]) -> dict[str, Any]:
    """A run of colearn on the data."""
    return {
        "task": {
            "name": "dataset",
            "path": str(data),
            "reward": f"{Path(__file__).stem}:matches",
            "test_path": str(data.with_name("test.jsonl")),
            "agents": agents,
            "words": list(COLOURS),
        },
        "algorithm": {
            "name": "grpo" if len(agents) == 1 else "magrpo",
            "rollout": {"name": "parallel", "k": GROUP},
            "advantage": {"normalize_std": True},
            "loss": {"ratio": "token", "clip": 0.2},
        },
        "models": {"*": {"path": "embedded-tiny", "learning_rate": RATE}},
        "agents": {"*": {"sampling": {"max_tokens": LONGEST}}},
        "train": {
            "environment_steps": UPDATES * PROMPTS * GROUP * len(agents),
            "episodes": PROMPTS,
        },
        "evaluation": {"every": UPDATES},
        "run": {"seed": seed},
    }


def by_colearn(settings: dict[str, Any], folder: Path) -> list[float]:
    """The mean training reward of each update."""
    from colearn.config import load_config
    from colearn.training.loop import Experiment

    Experiment(load_config(settings), folder).run()
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["metrics"]["return"] for line in lines if line["kind"] == "update"]


def by_trl(model: Path, data: Path, seed: int, folder: Path) -> list[float]:
    """The mean training reward of each step of GRPOTrainer."""
    from datasets import load_dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    trainer = GRPOTrainer(
        model=str(model),
        reward_funcs=matches,
        processing_class=AutoTokenizer.from_pretrained(model),
        train_dataset=load_dataset("json", data_files=str(data), split="train"),
        args=GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP,
            max_completion_length=LONGEST,
            max_steps=UPDATES,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type="dr_grpo",
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            seed=seed,
            disable_tqdm=True,
        ),
    )
    trainer.train()
    return [row["reward"] for row in trainer.state.log_history if "reward" in row]


def interval(values: list[float], rng: np.random.Generator) -> tuple[float, float, float]:
    """The mean and its 95% bootstrap interval."""
    drawn = rng.choice(values, size=(10_000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return fmean(values), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True)
    data = given.out / "train.jsonl"
    write_data(data)
    write_data(data.with_name("test.jsonl"))

    from colearn.config import build_task, load_config
    from colearn.models.embedded import embedded_model

    task = build_task(load_config(config(data, 0, ["agent"])))
    model = embedded_model(task, "embedded-tiny", "models.*.path")
    curves: dict[str, list[list[float]]] = {"trl": [], "colearn": [], "colearn, two agents": []}
    for seed in range(given.seeds):
        curves["trl"].append(by_trl(model, data, seed, given.out / f"trl-{seed}"))
        for name, agents in (("colearn", ["agent"]), ("colearn, two agents", ["draft", "final"])):
            folder = given.out / f"{len(agents)}-{seed}"
            curves[name].append(by_colearn(config(data, seed, agents), folder))
        print({name: [round(v, 2) for v in runs[-1]] for name, runs in curves.items()}, flush=True)
    rng = np.random.default_rng(0)
    print("| mean reward of updates | " + " | ".join(curves) + " |")
    for first in range(0, UPDATES, 12):
        cells = []
        for runs in curves.values():
            mean, low, high = interval([fmean(run[first : first + 12]) for run in runs], rng)
            cells.append(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
        print(f"| {first + 1}-{first + 12} | " + " | ".join(cells) + " |")
    pairs = zip(curves["colearn"], curves["trl"], strict=True)
    differences = [fmean(ours) - fmean(theirs) for ours, theirs in pairs]
    mean, low, high = interval(differences, rng)
    print(f"colearn - trl, mean over all updates: {mean:+.3f} [{low:+.3f}, {high:+.3f}]")
    (given.out / "curves.json").write_text(json.dumps(curves))


if __name__ == "__main__":
    main()
