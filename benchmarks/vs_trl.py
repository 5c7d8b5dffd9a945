"""A GRPO step of colearn against TRL's: one agent, 8 prompts x 4 completions of 64 tokens.

    python benchmarks/vs_trl.py --rounds 2                # one JSON line

Model, words and protocol are those of `vs_comlrl.py`: each system is a process of its own, told in
turn to train for some seconds; a ratio is the median over rounds of neighbouring measurements.
TRL's gradient checkpointing is off, which is its faster setting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from vs_comlrl import (
    FIRST_WORDS,
    NEW_TOKENS,
    SharedWords,
    State,
    Turns,
    Worker,
    make_folders,
    reward_of,
    words,
)

from colearn.contract.types import Outcome

PROMPTS, GROUP, ITEMS = 8, 4, 64
TASK = "single_words"


class SingleWords(SharedWords):
    """One agent, one turn."""

    agents = ("left",)
    horizon = 1

    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        return Outcome(state=State(state.item, 1), reward=reward_of([actions["left"]]))


def run_colearn(folder: Path) -> None:
    from colearn.config import Config
    from colearn.training.loop import Experiment

    settings = {
        "task": {"name": TASK},
        "algorithm": {"name": "grpo", "rollout": {"name": "parallel", "k": GROUP}},
        "models": {"*": {"path": str(folder / "model")}},
        "agents": {"*": {"sampling": {"max_tokens": NEW_TOKENS}}},
        "train": {"environment_steps": 10**9, "episodes": PROMPTS},
        "evaluation": {"every": 10**9, "episodes": 1, "transcripts": 0},
        "run": {"device": "cpu"},
    }
    clock = Clock()

    def between(progress: Any, metrics: Mapping[str, float]) -> None:
        clock.step(progress.environment_steps)

    with tempfile.TemporaryDirectory() as scratch:
        Experiment(Config.model_validate(settings), Path(scratch) / "run").run(between)


def grpo_trainer(
    model: str,
    prompts: Sequence[str],
    output: str,
    on_step_end: Callable[[int], None],
    *,
    group: int,
    new_tokens: int,
    **settings: Any,
) -> Any:
    """Returns TRL's trainer, for PROMPTS prompts with `group` completions each. `on_step_end` is
    called with the number of steps. `settings` are further arguments of `GRPOConfig`."""
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Between(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            on_step_end(state.global_step)

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [reward_of([text]) for text in completions]

    return GRPOTrainer(
        model=model,
        reward_funcs=reward,
        processing_class=AutoTokenizer.from_pretrained(model),
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in prompts]),
        callbacks=[Between()],
        args=GRPOConfig(
            output_dir=output,
            num_generations=group,
            max_completion_length=new_tokens,
            temperature=1.0,
            top_k=0,
            max_steps=10**6,
            lr_scheduler_type="constant",
            beta=0.0,
            gradient_checkpointing=False,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            per_device_train_batch_size=PROMPTS * group,
            **settings,
        ),
    )


def run_trl(folder: Path) -> None:
    clock = Clock()
    grpo_trainer(
        str(folder / "model"),
        [words(n, "left", 0, FIRST_WORDS) for n in range(ITEMS)],
        str(folder / "trl"),
        lambda steps: clock.step(steps * PROMPTS * GROUP),
        group=GROUP,
        new_tokens=NEW_TOKENS,
        use_cpu=True,
        bf16=False,
    ).train()


class Clock:
    """Answers the parent after each measurement, between two steps."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.actions, self.started, self.budget = 0, 0.0, 0.0

    def step(self, actions: int) -> None:
        spent = time.perf_counter() - self.started
        if self.budget and spent < self.budget:
            return
        if self.budget:
            self.turns.answer(actions - self.actions, spent)
        told = self.turns.wait()
        if told is None:
            sys.exit(0)
        self.actions, self.started, self.budget = actions, time.perf_counter(), told


def compare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Rates and ratios on the model and the entry point in `folder`."""
    systems = ("trl", "colearn")
    rates: dict[str, list[float]] = {name: [] for name in systems}
    works: dict[str, list[float]] = {name: [] for name in systems}
    peaks: dict[str, float] = {}
    entry = folder / "entry" / "vs_comlrl_task-0.dist-info" / "entry_points.txt"
    entry.write_text(entry.read_text() + f"{TASK} = vs_trl:SingleWords\n")
    workers = {name: Worker(folder, options.threads, [name], __file__) for name in systems}
    try:
        for round_ in range(options.rounds + 1):
            for name, worker in workers.items():
                worker.tell(options.seconds if round_ else 0.001)
                answer = worker.answer()
                peaks[name] = answer["peak"]
                if round_:
                    rates[name].append(answer["actions"] / answer["seconds"])
                    works[name].append(answer["actions"] / answer["cpu"])
    finally:
        for worker in workers.values():
            worker.close()
    return {
        "threads": options.threads,
        "completions_per_second": {n: round(statistics.median(r), 3) for n, r in rates.items()},
        "ratios": [
            round(own / peer, 3) for peer, own in zip(rates["trl"], rates["colearn"], strict=True)
        ],
        "cpu_ratios": [
            round(own / peer, 3) for peer, own in zip(works["trl"], works["colearn"], strict=True)
        ],
        "peak_gib": {name: round(peak / 2**30, 2) for name, peak in peaks.items()},
    }


def main() -> None:
    if "--worker" in sys.argv:
        folder, system = sys.argv[2:]
        (run_colearn if system == "colearn" else run_trl)(Path(folder))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement, at least")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder)
        print(json.dumps(compare(folder, options)))


if __name__ == "__main__":
    main()
