"""Selects the default generator of a run whose config names no generator."""

from __future__ import annotations

import importlib.util
import sys

from colearn.config import Config, GeneratorChoice

LOWEST_TEMPERATURE = 0.01
"""Minimum sampling temperature of vLLM, which raises lower temperatures to this value. A
temperature of 0 decodes greedily."""


def with_default_generator(
    config: Config, device: str, *, recorded: Config | None = None, tells: bool = False
) -> Config:
    """Returns the config with the vLLM generator if the run is on a CUDA device, the vLLM package
    is installed and vLLM supports every agent and model. Otherwise returns the unchanged config.

    `device` is the type of the run's device. `tells`: print the choice and the reason for it on
    stderr. A config that names a generator keeps this generator, and a resumed run keeps the
    generator of its `recorded` config.
    """
    if "generator" in config.run.model_fields_set:
        return config
    if recorded is not None:
        return _with(config, recorded.run.generator)
    if device != "cuda" or not _package():
        return config
    reason = _unable(config)
    if tells:
        if reason is None:
            line = (
                "run.generator: vllm, because a CUDA device and the package are here; "
                "run.generator: transformers decodes with the trained models themselves"
            )
        else:
            line = f"run.generator: transformers, because vLLM has no {reason}"
        print(line, file=sys.stderr)
    if reason is not None:
        return config
    return _with(config, GeneratorChoice(name="vllm"))


def _with(config: Config, generator: GeneratorChoice) -> Config:
    run = config.run.model_copy(update={"generator": generator})
    return config.model_copy(update={"run": run})


def _package() -> bool:
    return importlib.util.find_spec("vllm") is not None


def _unable(config: Config) -> str | None:
    """Returns the first feature that an agent or a model needs and that vLLM's engine lacks; None
    if there is no such feature."""
    for agent in (*config.agents.values(), *config.players.values()):
        if agent.window is not None:
            return "context windows"
        if 0 < agent.sampling.temperature < LOWEST_TEMPERATURE:
            return f"temperatures between 0 and {LOWEST_TEMPERATURE}"
    if any(model.quantization is not None for model in config.models.values()):
        return "bases in 4 bits"
    if any(
        "cuda" not in config.placement[name] for name in config.models if name in config.placement
    ):
        return "models on several kinds of devices"
    return None
