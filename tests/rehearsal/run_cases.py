"""Whole runs of training, on the CPU and on a device, in name only or a real one."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from colearn.config import load_config
from colearn.training.loop import Experiment
from tests.helpers.tiny import save_model

CRITIC = {"collm_cc", "collm_dc", "coma", "mappo"}


def notes(algorithm: str, folder: Path, /, **changes: Any) -> dict[str, Any]:
    """Two iterations on a text task; `changes` are merged into the sections of this config."""
    name, k = algorithm, {} if algorithm in CRITIC else {"rollout": {"k": 2}}
    model = save_model(folder / "model", changes.pop("kind", "qwen3"))
    sections: dict[str, Any] = {
        "task": {"name": "tiny:Notes", "horizon": 2, "ends": True, "items": 3},
        "algorithm": {"name": name, **k},
        "models": {"*": {"path": model, "learning_rate": 1e-5}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {
            "episodes": 2,
            "token_budget": 300,
            "iterations": 2,
            "environment_steps": 1000,
        },
        "evaluation": {"every": 2, "episodes": 1},
    }
    if algorithm in CRITIC:
        sections["critic"] = {"path": model, "learning_rate": 1e-5}
    for section, values in changes.items():
        if section == "every model":
            sections["models"]["*"] |= values
        elif section == "critic" and "share" in values:
            sections["critic"] = values
        else:
            sections[section] = {**sections.get(section, {}), **values}
    return sections


LORA = {"every model": {"lora": {"rank": 2}}}


def _with(algorithm: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    k = {} if algorithm in CRITIC else {"rollout": {"k": 2}}
    return {"algorithm": {"name": algorithm, **k, **parts}}


def kuhn(folder: Path) -> dict[str, Any]:
    """Self-play against past selves."""
    return {
        "task": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
        "algorithm": {"name": "marshal", "credit": {"name": "payoff"}},
        "cast": {"name": "league", "pool": 2, "every": 1},
        "models": {"player": {"path": save_model(folder / "model"), "learning_rate": 1e-5}},
        "agents": {"*": {"model": "player", "sampling": {"max_tokens": 3}}},
        "train": {"episodes": 4, "environment_steps": 1000, "iterations": 2},
        "evaluation": {"every": 2, "episodes": 2},
    }


FAMILIES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "full weights, moving reference": lambda f: notes(
        "magrpo", f, **_with("magrpo", {"loss": {"kl": 0.1, "reference_update_every": 1}})
    ),
    "shared heads, adapters": lambda f: notes("collm_dc", f, critic={"share": "actor"}, **LORA),
    "one base": lambda f: notes("mappo", f, critic={"lora": {"rank": 2}}, **LORA),
    "past selves": kuhn,
    "copy": lambda f: notes(
        "magrpo", f, run={"generator": {"name": "transformers", "copy": True, "device": "cuda:0"}}
    ),
    "checkpointing": lambda f: notes("coma", f, **{"every model": {"checkpointing": True}}),
    "critic, window": lambda f: notes("collm_cc", f, agents={"ada": {"window": 30}}),
    "sliding windows": lambda f: notes("magrpo", f, kind="gemma3"),
    "agents apart, reference": lambda f: notes(
        "at_grpo",
        f,
        run={"generator": {"name": "transformers", "batch_agents": False}},
        **LORA,
        **_with("at_grpo", {"loss": {"kl": 0.1, "entropy": 0.01}}),
    ),
    "bfloat16": lambda f: notes(
        "collm_cc", f, critic={"dtype": "bfloat16"}, **{"every model": {"dtype": "bfloat16"}}
    ),
    "bfloat16, adapters": lambda f: notes(
        "magrpo", f, **{"every model": {"dtype": "bfloat16", "lora": {"rank": 2}}}
    ),
}


EXACT = [family for family in FAMILIES if "bfloat16" not in family]
HALF = [family for family in FAMILIES if "bfloat16" in family]


def check_same_training(device: Mapping[str, Any], cpu: Mapping[str, Any], gap: float) -> None:
    """Both runs have trained the same weights; `gap`: largest mismatch of log-probabilities on the
    device."""
    assert device["status"] == cpu["status"] == "finished"
    assert device["updates"] == cpu["updates"] > 0
    assert device["weights"].keys() == cpu["weights"].keys()
    worst = max(
        (abs(a - b), name)
        for name, weight in cpu["weights"].items()
        for a, b in zip(weight, device["weights"][name], strict=True)
    )
    assert worst[0] <= 1e-5, worst
    for name in cpu["metrics"]:
        if "logprob_mismatch" in name:
            assert device["metrics"][name] <= gap, name


def check_half_precision(device: Mapping[str, Any]) -> None:
    """The run has finished with finite weights, and its log-probabilities are near those of the
    update."""
    assert device["status"] == "finished" and device["updates"] > 0
    assert all(math.isfinite(v) for weight in device["weights"].values() for v in weight)
    gaps = [v for name, v in device["metrics"].items() if "logprob_mismatch" in name]
    assert gaps and max(gaps) <= 5e-2


def trained(
    family: str,
    device: str,
    tf32: bool = True,
    cuda_graphs: bool = True,
    placement: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The status of a run, its metrics by line, and its weights flattened. `placement`: devices of
    networks that are not on `device`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sections = {**FAMILIES[family](folder), "placement": dict(placement or {})}
        run = {**sections.get("run", {}), "device": device, "tf32": tf32}
        generator = {"name": "transformers", "cuda_graphs": cuda_graphs, **run.get("generator", {})}
        if device == "cpu":
            generator.pop("device", None)
        run["generator"] = generator
        done = Experiment(load_config({**sections, "run": run}), folder / "run").run()
        metrics = {}
        for number, line in enumerate((folder / "run/metrics.jsonl").read_text().splitlines()):
            for metric, value in json.loads(line)["metrics"].items():
                if "seconds" not in metric:
                    metrics[f"{number}/{metric}"] = value
        steps = (folder / "run/checkpoints").glob("step-*")
        newest = max(steps, key=lambda path: int(path.name.removeprefix("step-")))
        weights = {
            f"{path.parent.name}/{tensor}": weight.flatten().tolist()
            for path in sorted(newest.glob("*/*.safetensors"))
            if not path.stem.startswith("optimizer")
            for tensor, weight in load_file(path).items()
        }
    return {
        "status": done.status,
        "updates": done.updates,
        "metrics": metrics,
        "weights": weights,
    }
