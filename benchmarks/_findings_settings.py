"""Measurements of `accelerator_findings.py` that need no device, for two versions of colearn.

    python benchmarks/_findings_settings.py CASE

PYTHONPATH begins with the version to measure. Names of the earlier version are tried where those of
the present one are missing.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from colearn.config import load_config, resolve
from colearn.errors import ConfigError
from colearn.learn.deepspeed_config import STAGES

GAME = {
    "task": {"name": "dpomdp"},
    "algorithm": {"name": "magrpo", "loss": {"importance_cap": 2.0}},
    "models": {"*": {"path": "embedded"}},
    "agents": {"*": {}},
}
RAY = {"name": "ray"}
COPIES = {"name": "transformers", "copy": True}


def refused(run: dict[str, Any], **sections: Any) -> str:
    try:
        resolve(load_config({**GAME, **sections, "run": run}))
    except ConfigError as error:
        return str(error)
    return "accepted"


def ray() -> dict[str, str]:
    """What a run on Ray refuses before it starts."""
    exact = {"evaluation": {"exact": True}}
    return {
        "staleness": refused({"host": RAY, "generator": COPIES}, train={"staleness": 1}),
        "deepspeed": refused({"host": RAY, "learner": "deepspeed"}),
        "exact": refused({"host": RAY}, **exact),
    }


def two_processes() -> str:
    """What a vLLM server's engine answers to one of two training processes."""
    from colearn.generate.kinds import VLLMServer

    os.environ["WORLD_SIZE"] = "2"
    kind: Any = VLLMServer(url="http://127.0.0.1:9")
    try:
        kind.build(None, {})
    except ConfigError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - no refusal: it goes on to the base, which is None
        return f"not refused ({type(error).__name__})"
    return "not refused"


def tied_head() -> dict[str, int]:
    """Bytes of the file of full weights for an engine on a device, in bfloat16."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from colearn.generate.model_folder import write_weights
    from colearn.models.base import Base

    shape: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    config = Qwen3Config(**shape, **heads, vocab_size=4096, tie_word_embeddings=True)
    base = Base(Qwen3ForCausalLM(config))
    exported: Any = import_module("colearn.models.weight_update")
    weights = exported.plain_weights(base)
    if hasattr(exported, "each_once"):  # as `ServedWeights` does for a device
        weights = exported.each_once(weights)
    with tempfile.TemporaryDirectory() as folder:
        write_weights(Path(folder) / "weights", weights, torch.bfloat16)
        size = (Path(folder) / "weights" / "model.safetensors").stat().st_size
    return {"bytes": size, "weights": 2 * sum(one.numel() for one in base.causal.parameters())}


def defaults() -> dict[str, Any]:
    """Values of the settings that an accelerator needs otherwise than a CPU."""
    config = load_config(GAME)
    run: Any = resolve(config)
    values: dict[str, Any] = {"token_budget, CPU": getattr(run, "token_budget", None)}
    if values["token_budget, CPU"] is None:
        values["token_budget, CPU"] = values["token_budget, CUDA"] = config.train.token_budget
    else:
        there: Any = resolve(config, auto="cuda")
        values["token_budget, CUDA"] = there.token_budget
    values["tf32"] = getattr(config.run, "tf32", False)
    values["ZeRO stages"] = list(STAGES)
    return values


CASES: dict[str, Callable[[], Any]] = {
    "ray": ray,
    "two processes": two_processes,
    "tied head": tied_head,
    "defaults": defaults,
}

if __name__ == "__main__":
    print("\n" + json.dumps(CASES[sys.argv[1]]()))
