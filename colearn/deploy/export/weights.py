"""Extracts an actor's weights from a checkpoint for transformers and peft."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from colearn.config import ModelSettings
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.models.load import DTYPES
from colearn.models.merging import merged
from colearn.models.network import Network
from colearn.models.saved_folder import save_model
from colearn.text.notes import note
from colearn.training.learners.checkpoint_files import checkpoint_network

from .run_reader import Trained


def load_actor(trained: Trained, name: str) -> Network:
    """Load the physical model `name` at the run's checkpoint on the CPU, without optimiser and
    critic.

    Errors: ConfigError for a missing base, CheckpointError for a damaged or foreign checkpoint.
    """
    # an adapter is folded into weights that were not rounded to 4 bits
    settings = {"path": trained.paths[name], "device": "cpu", "quantization": None}
    config = trained.run.config
    models = {**config.models, name: config.models[name].model_copy(update=settings)}
    run = replace(trained.run, config=config.model_copy(update={"models": models}))
    return checkpoint_network(run, NetworkKey("actor", name), trained.checkpoint)


def save_merged(network: Network, folder: Path, dtype: str) -> None:
    """Write config.json and all weights as safetensors. An adapter is merged into the weights.
    `network` cannot be used afterwards.

    The adapter is merged in float32 and the result is rounded once to `dtype`.
    """
    base = network.base
    model: Any = base.causal.float()
    if network.adapter is not None:
        model = merged(base.model, network.adapter)
    save_model(model.to(DTYPES[dtype]), folder)


def save_adapter(network: Network, folder: Path, base: str) -> None:
    """Write adapter_config.json, which names `base`, and adapter_model.safetensors in float32."""
    from peft import get_peft_model_state_dict

    assert network.adapter is not None
    model = network.base.model
    weights = get_peft_model_state_dict(
        model, adapter_name=network.adapter, save_embedding_layers=False
    )
    config = model.peft_config[network.adapter]
    config.base_model_name_or_path, config.inference_mode = base, True
    config.task_type = "CAUSAL_LM"
    if not isinstance(config.target_modules, str):  # a pattern is one text
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(folder)
    save_file(
        {name: tensor.detach().contiguous() for name, tensor in weights.items()},
        folder / "adapter_model.safetensors",
        metadata={"format": "pt"},
    )


def base_reference(path: str) -> str:
    """Return the reference by which an adapter names its base: a hub name, or the absolute path of
    a folder."""
    return str(Path(path).resolve()) if Path(path).is_dir() else path


def has_adapter(model: ModelSettings) -> bool:
    """Whether a model was trained by an adapter."""
    return model.trained and model.lora is not None


def check_adapter(trained: Trained) -> None:
    """Tell the user which models have no adapter. Errors: ConfigError if none has one."""
    models = trained.run.config.models
    without = {
        f"models.{name} was {'trained in full' if model.trained else 'not trained'}"
        for name, model in models.items()
        if not has_adapter(model)
    }
    if len(without) == len(models):
        raise ConfigError(f"--adapter: {min(without)} and has no adapter; leave --adapter out")
    for reason in sorted(without):
        note(f"--adapter: {reason} and has no adapter; its agents' folders hold all weights")
