"""Whole iterations on an accelerator: beside what a dry run predicts, and beside TRL."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from vs_comlrl import AGENTS, SharedWords, State, reward_of, word_tokenizer
from vs_trl import PROMPTS, grpo_trainer

from colearn.contract.types import Outcome

GROUP, STEPS = 8, 4
"""Of a GRPO run: completions of a prompt, and measured steps."""
SIZES: dict[str, tuple[int, int, int]] = {"small": (24, 12, 8), "large": (512, 128, 256)}
"""Words of the first observation and of later ones, and new tokens."""
KIND = "small" if "--small" in sys.argv else "large"
FIRST, NEXT, NEW = SIZES[KIND]
WORDS = 200
"""The words that observations use, which every vocabulary holds."""


def long_words(item: int, agent: str, turn: int) -> str:
    rng = np.random.default_rng([item, AGENTS.index(agent), turn])
    return " ".join(f"w{number}" for number in rng.integers(0, WORDS, NEXT if turn else FIRST))


class LongWords(SharedWords):
    """Two agents, two turns, observations in the size of an accelerator's work."""

    def observe(self, state: State, agent: str) -> str:
        return long_words(state.item, agent, state.turn)


class OneAgent(LongWords):
    """One agent, one turn."""

    agents = AGENTS[:1]
    horizon = 1

    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        return Outcome(state=State(state.item, 1), reward=reward_of([actions[AGENTS[0]]]))


@contextmanager
def model_folder(shape: Mapping[str, int]) -> Iterator[Path]:
    """A fresh Qwen3 of this shape in bfloat16, with a tokenizer of whole words."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = Qwen3Config(
        **shape, tie_word_embeddings=True, max_position_embeddings=4096, dtype="bfloat16", **ends
    )
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.generation_config.do_sample = True
    model.generation_config.top_k = 0
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        word_tokenizer(shape["vocab_size"]).save_pretrained(folder)
        del model
        yield Path(folder)


def team_settings(path: str, algorithm: str, lora: bool, device: str, **run: Any) -> dict[str, Any]:
    model: dict[str, Any] = {"path": path, "dtype": "bfloat16"}
    if lora:
        model["lora"] = {"rank": 16}
    return {
        "task": {"name": "_gpu_runs:LongWords"},
        "algorithm": {"name": algorithm},
        "models": {"*": model},
        "agents": {"*": {"sampling": {"max_tokens": NEW}}},
        "critic": None if algorithm == "magrpo" else {**model, "baseline": "none"},
        "train": {"episodes": 4, "token_budget": 16_384, "environment_steps": 10**9},
        "evaluation": {"every": 10**9, "episodes": 1},
        "run": {"device": device, **run},
    }


def team(
    shape: Mapping[str, int], device: Any, algorithm: str, lora: bool, **run: Any
) -> dict[str, Any]:
    """Seconds of an iteration's rollout and update, and peak GiB, beside those of a dry run."""
    import torch

    from colearn.config import Config
    from colearn.estimate import estimate
    from colearn.rollout.grow import grow
    from colearn.training.load_team import load_team
    from colearn.training.update.build_updater import build_updater

    counted = device.type == "cuda" and KIND == "large"

    def wait() -> float:
        if counted:
            torch.cuda.synchronize()
        return time.perf_counter()

    with model_folder(shape) as path:
        config = Config.model_validate(
            team_settings(str(path), algorithm, lora, device.type, **run)
        )
        predicted: dict[str, Any] = {}
        if counted:
            dry = estimate(config)
            predicted = {"peak_gib": round(dry.peak(str(device)) / 2**30, 2)}
            if dry.seconds is not None:  # the item `speed` comes before this one
                predicted["rollout"] = round(dry.seconds.rollout, 2)
                predicted["update"] = round(dry.seconds.update, 2)
        team = load_team(config)
        updater = build_updater(team)
        assert updater is not None
        if counted:
            torch.cuda.reset_peak_memory_stats()
        spent: list[tuple[float, float]] = []
        trees: Any = []
        for number in range(3):
            started = wait()
            items = range(4 * number, 4 * number + 4)
            trees, _ = grow(
                team.run.task, list(items), team.players, team.run.parts.rollout, seed=number
            )
            grown = wait()
            updater.update(trees, 0)
            spent.append((grown - started, wait() - grown))
        peak = torch.cuda.max_memory_allocated() if counted else 0
    rollout, update = (round(min(times), 3) for times in zip(*spent[1:], strict=True))
    actions = sum(len(tree.nodes) - 1 for tree in trees)
    return {
        "joint_actions": actions,
        "rollout": rollout,
        "update": update,
        "peak_gib": round(peak / 2**30, 2),
        "first": [round(seconds, 2) for seconds in spent[0]],
        "new_tokens_per_second": round(actions * len(AGENTS) * NEW / rollout, 1),
        "predicted": predicted,
    }


class Enough(Exception):
    """Ends a run that has been measured."""


def _rate(ends: Sequence[float], peak: int) -> dict[str, Any]:
    """Of steps that ended at these times; the first one warms up."""
    seconds = [later - sooner for sooner, later in itertools.pairwise(ends)]
    best = sorted(seconds)[len(seconds) // 2]
    return {
        "completions": PROMPTS * GROUP,
        "new_tokens": NEW,
        "seconds": round(best, 3),
        "completions_per_second": round(PROMPTS * GROUP / best, 2),
        "peak_gib": round(peak / 2**30, 2),
    }


def _end_of_step(device: Any, ends: list[float]) -> Callable[[], bool]:
    """Notes the time; whether there were enough steps."""
    import torch

    def note() -> bool:
        if device.type == "cuda" and KIND == "large":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())
        return len(ends) > STEPS

    return note


def _peak(device: Any) -> int:
    import torch

    counted = device.type == "cuda" and KIND == "large"
    return torch.cuda.max_memory_allocated() if counted else 0


def own_grpo(shape: Mapping[str, int], device: Any, **run: Any) -> dict[str, Any]:
    """Seconds of a GRPO step here, in full weights."""
    from colearn.config import Config
    from colearn.training.loop import Experiment

    ends: list[float] = []
    note = _end_of_step(device, ends)

    def between(*_: Any) -> None:
        if note():
            raise Enough

    with model_folder(shape) as path, tempfile.TemporaryDirectory() as scratch:
        settings = team_settings(str(path), "magrpo", False, device.type, **run) | {
            "task": {"name": "_gpu_runs:OneAgent"},
            "algorithm": {"name": "grpo", "rollout": {"name": "parallel", "k": GROUP}},
        }
        settings["train"]["episodes"] = PROMPTS
        with suppress(Enough):
            Experiment(Config.model_validate(settings), Path(scratch) / "run").run(between)
        return _rate(ends, _peak(device))


def trl_grpo(shape: Mapping[str, int], device: Any) -> dict[str, Any]:
    """Seconds of a GRPO step of TRL, at equal tokens, without gradient checkpointing."""
    import torch

    ends: list[float] = []
    note = _end_of_step(device, ends)

    def on_step_end(_: int) -> None:
        if note():
            raise Enough

    with model_folder(shape) as path, tempfile.TemporaryDirectory() as scratch:
        trainer = grpo_trainer(
            str(path),
            [long_words(item, AGENTS[0], 0) for item in range(64)],
            scratch,
            on_step_end,
            group=GROUP,
            new_tokens=NEW,
            use_cpu=device.type == "cpu",
            bf16=True,
            model_init_kwargs={"dtype": torch.float32},
        )
        with suppress(Enough):
            trainer.train()
        return _rate(ends, _peak(device))
