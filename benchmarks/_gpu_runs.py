"""Whole iterations and runs on an accelerator: beside what a dry run predicts, and beside TRL."""

from __future__ import annotations

import gc
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _gpu_items import Rows
from vs_comlrl import AGENTS, SharedWords, State, reward_of, word_tokenizer
from vs_trl import PROMPTS, grpo_trainer

from colearn.contract.types import Outcome

GROUP, STEPS, WORDS = 8, 3, 200
"""Completions of a prompt and measured steps of a GRPO run; words of all observations."""
CLASSEVAL = 40 * 66 // 2
"""Iterations of the peer's run on ClassEval: 40 epochs of 66 items, two in an iteration."""


@dataclass(frozen=True)
class Sizes:
    """Words of the first observation and of later ones, new tokens, episodes, and the temperature,
    which is also top_p."""

    first: int = 512
    later: int = 128
    new: int = 256
    episodes: int = 4
    heat: float = 1.0

    def reduced(self) -> Sizes:
        return replace(self, first=24, later=12, new=8)


def long_words(item: int, agent: str, turn: int, count: int) -> str:
    rng = np.random.default_rng([item, AGENTS.index(agent), turn])
    return " ".join(f"w{number}" for number in rng.integers(0, WORDS, count))


class LongWords(SharedWords):
    """Two agents, two turns, observations in the size of an accelerator's work."""

    def __init__(self, first: int = 512, later: int = 128) -> None:
        self.words = (first, later)

    def observe(self, state: State, agent: str) -> str:
        return long_words(state.item, agent, state.turn, self.words[min(state.turn, 1)])


class OneAgent(LongWords):
    """One agent, one turn."""

    agents = AGENTS[:1]
    horizon = 1

    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        return Outcome(state=State(state.item, 1), reward=reward_of([actions[AGENTS[0]]]))


@contextmanager
def model_folder(shape: Mapping[str, int], small: bool) -> Iterator[str]:
    """A fresh Qwen3 of this shape in bfloat16, with a tokenizer of whole words."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = Qwen3Config(
        **shape, tie_word_embeddings=True, max_position_embeddings=4096, dtype="bfloat16", **ends
    )
    torch.manual_seed(0)
    with torch.device("cpu" if small else "cuda"):
        model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.generation_config.do_sample = True
    model.generation_config.top_k = 0
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        word_tokenizer(shape["vocab_size"]).save_pretrained(folder)
        del model
        yield folder


def wait(small: bool) -> float:
    """The time, once the device has done what it was given."""
    import torch

    if not small:
        torch.cuda.synchronize()
    return time.perf_counter()


def freed(small: bool) -> None:
    """Frees what an earlier measurement held, and counts the peak anew."""
    import torch

    gc.collect()
    if not small:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak(small: bool) -> float:
    import torch

    return 0.0 if small else round(torch.cuda.max_memory_allocated() / 2**30, 2)


def settings_of(path: str, sizes: Sizes, device: Any, lora: bool, **run: Any) -> dict[str, Any]:
    model: dict[str, Any] = {"path": path, "dtype": "bfloat16"}
    heat = {"temperature": sizes.heat, "top_p": sizes.heat}
    if lora:
        model["lora"] = {"rank": 16}
    return {
        "task": {"name": "_gpu_runs:LongWords", "first": sizes.first, "later": sizes.later},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": model},
        "agents": {"*": {"sampling": {"max_tokens": sizes.new, **heat}}},
        "critic": {**model, "baseline": "none"},
        "train": {"episodes": sizes.episodes, "token_budget": 16_384, "environment_steps": 10**9},
        "evaluation": {"every": 10**9, "episodes": 1},
        "run": {"device": str(device), **run},
    }


def iteration(shape: Mapping[str, int], small: bool, device: Any, row: str, **run: Any) -> Rows:
    """CoLLM-CC with adapters on one base, two turns: seconds and peak beside a dry run's."""
    run = {"generator": "transformers", **run}
    measured, dry_run = team(shape, small, device, Sizes(), **run)
    yield row, {**measured, "dry_run": dry_run}


def classeval(shape: Mapping[str, int], small: bool, device: Any) -> Rows:
    """CoLLM-CC with 3B models in ClassEval's shape, as adapters: hours of the whole run."""
    sizes = Sizes(first=600, later=800, new=600, episodes=2, heat=0.6)
    measured = team(shape, small, device, sizes, generator="transformers")
    figures = next(measured)
    seconds = figures["rollout"] + figures["update"]
    yield "ClassEval", {"hours": round(CLASSEVAL * seconds / 3600, 2), **figures}
    yield "ClassEval, dry run", next(measured)


def team(
    shape: Mapping[str, int], small: bool, device: Any, sizes: Sizes, **run: Any
) -> Iterator[dict[str, Any]]:
    """Seconds of an iteration's rollout and update, and peak GiB; then those of a dry run."""
    from colearn.config import Config
    from colearn.estimate import estimate
    from colearn.rollout.grow import grow
    from colearn.training.load_team import load_team
    from colearn.training.update.build_updater import build_updater

    sizes = sizes.reduced() if small else sizes
    with model_folder(shape, small) as path:
        settings = settings_of(path, sizes, device, True, **run)
        config = Config.model_validate(settings)
        team = load_team(config)
        updater = build_updater(team)
        assert updater is not None
        freed(small)
        spent: list[tuple[float, float]] = []
        trees: Any = []
        for number in range(2):
            started = wait(small)
            items = range(sizes.episodes * number, sizes.episodes * (number + 1))
            trees, _ = grow(
                team.run.task, list(items), team.players, team.run.parts.rollout, seed=number
            )
            grown = wait(small)
            updater.update(trees, 0)
            spent.append((grown - started, wait(small) - grown))
        rollout, update = (round(seconds, 3) for seconds in spent[-1])
        actions = sum(len(tree.nodes) - 1 for tree in trees)
        yield {
            "joint_actions": actions,
            "rollout": rollout,
            "update": update,
            "peak_gib": peak(small),
            "first": [round(seconds, 2) for seconds in spent[0]],
            "new_tokens_per_second": round(actions * len(AGENTS) * sizes.new / rollout, 1),
        }
        predicted: dict[str, Any] = {}
        if not small:  # most of a minute
            dry = estimate(config)
            predicted = {"peak_gib": round(dry.peak(str(device)) / 2**30, 2)}
            if dry.seconds is not None:  # the item `speed` comes before this one
                times = {"rollout": dry.seconds.rollout, "update": dry.seconds.update}
                predicted |= {name: round(seconds, 2) for name, seconds in times.items()}
        yield predicted


def matches(prompts: Any, completions: Any, colour: Any, **_: Any) -> list[float]:
    return [float(said.strip() == right) for said, right in zip(completions, colour, strict=True)]


def whole(_: Any, small: bool, __: Any) -> Rows:
    """A run of a team, stopped and resumed, from one config that names no device: two agents and a
    central critic as adapters on one base."""
    import colearn
    from colearn.deploy.export.agent_folders import export_run

    rows = [{"prompt": f"paint {n} {c}", "colour": c} for n in range(30) for c in ("red", "blue")]
    task = {"name": "dataset", "agents": ["draft", "final"], "words": ["red", "blue"]}
    model = {"path": "embedded-copy", "learning_rate": 2e-3, "lora": {"rank": 16}}
    steps = 128 if small else 1280
    with tempfile.TemporaryDirectory() as folder:
        given: Any = {
            "data": rows,
            "reward": matches,
            "models": model,
            "critic": model,
            "out": Path(folder) / "run",
            "train": {"environment_steps": steps, "episodes": 32},
            "evaluation": {"every": 5, "repeats": 1 if small else 8},
        }
        started = time.perf_counter()
        with colearn.Trainer(task, **given) as trainer:
            trainer.evaluate()
            trainer.step()
            trainer.save()
            networks = trainer.team.networks.values()
            devices = sorted({str(network.base.device) for network in networks})
        made = time.perf_counter() - started
        result = colearn.train(task, resume=True, **given)
        export_run(result.folder, Path(folder) / "agents")
        said = colearn.load_agent(Path(folder) / "agents", "final").act("paint 3 red").text
        curve = [round(float(value or 0), 3) for _, value in result.curve()]
        yield (
            "a team's run",
            {
                "devices": devices,
                "iterations": len(result.run.updates),
                "return": curve,
                "rises": curve[-1] - curve[0],
                "exported_agent_says": said,
                "seconds_until_stopped": round(made, 1),
                "seconds": round(time.perf_counter() - started, 1),
            },
        )


class Enough(Exception):
    """Ends a run that has been measured."""


class Clock:
    """Notes the ends of steps, and ends a run after enough of them; the first one warms up."""

    def __init__(self, small: bool) -> None:
        freed(small)
        self.small = small
        self.ends: list[float] = []

    def step(self, *_: Any) -> None:
        self.ends.append(wait(self.small))
        if len(self.ends) > STEPS:
            raise Enough

    def figures(self, new: int) -> dict[str, Any]:
        seconds = [later - sooner for sooner, later in itertools.pairwise(self.ends)]
        median = sorted(seconds)[len(seconds) // 2]
        figures = {"completions": PROMPTS * GROUP, "new_tokens": new, "seconds": round(median, 3)}
        return {**figures, "peak_gib": peak(self.small)}


def grpo(shape: Mapping[str, int], small: bool, device: Any) -> Rows:
    """Seconds of a GRPO step in full weights here, then by TRL, at equal tokens."""
    sizes = Sizes().reduced() if small else Sizes()
    with model_folder(shape, small) as path:
        own = own_grpo(path, sizes, small, device)
        yield "grpo", own
        peer = trl_grpo(path, sizes, small)
        yield "grpo by trl", {**peer, "times_ours": round(peer["seconds"] / own["seconds"], 2)}


def own_grpo(path: str, sizes: Sizes, small: bool, device: Any) -> dict[str, Any]:
    from colearn.config import Config
    from colearn.training.loop import Experiment

    clock = Clock(small)
    with tempfile.TemporaryDirectory() as scratch:
        settings = settings_of(path, sizes, device, False, generator="transformers")
        settings["task"]["name"] = "_gpu_runs:OneAgent"
        settings["algorithm"] = {"name": "grpo", "rollout": {"name": "parallel", "k": GROUP}}
        settings["train"]["episodes"], settings["critic"] = PROMPTS, None
        with suppress(Enough):
            Experiment(Config.model_validate(settings), Path(scratch) / "run").run(clock.step)
        return clock.figures(sizes.new)


def trl_grpo(path: str, sizes: Sizes, small: bool) -> dict[str, Any]:
    """By TRL's own generator, without gradient checkpointing."""
    import torch

    clock = Clock(small)
    with tempfile.TemporaryDirectory() as scratch:
        trainer = grpo_trainer(
            path,
            [long_words(item, AGENTS[0], 0, sizes.first) for item in range(64)],
            scratch,
            clock.step,
            group=GROUP,
            new_tokens=sizes.new,
            use_cpu=small,
            bf16=True,
            model_init_kwargs={"dtype": torch.float32},
        )
        with suppress(Enough):
            trainer.train()
        return clock.figures(sizes.new)
