"""Writes a value model of a run's checkpoint into a separate folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.learn.checkpoint_network import checkpoint_network
from colearn.models.critic_folder import CriticManifest, head_numbers, named_part, save_critic
from colearn.models.folders import base_folders
from colearn.models.load import load_tokenizer, read_config
from colearn.models.saved_folder import save_tokenizer
from colearn.record.checkpoints import Checkpoint

from .item_means import ItemMeans

Dtype = Literal["float32", "bfloat16", "float16"]


def keep_critic(
    run: ResolvedRun,
    key: NetworkKey,
    checkpoint: Checkpoint,
    folder: Path,
    *,
    joint_actions: int,
    adapter: bool = False,
    dtype: Dtype | None = None,
) -> CriticManifest:
    """Write weights, tokenizer and manifest of the value model `key` into an empty folder.

    run: must be resolved from a config that `with_given_critic` has processed.
    joint_actions: number of joint actions that the critic was trained on up to the checkpoint.
    Errors: as for `checkpoint_network` and `save_critic`.
    """
    settings = run.config.critic
    assert settings is not None, "a run with a value model has its settings"
    path = base_folders(run, [key])[run.path(key)]
    tokenizer = load_tokenizer(path, field="critic.path")
    # an adapter is merged into weights that are not quantised
    changed: dict[str, Any] = {"path": path, "device": "cpu", "devices": {}, "quantization": None}
    config = run.config.model_copy(update={"critic": settings.model_copy(update=changed)})
    network = checkpoint_network(replace(run, config=config), key, checkpoint.path)
    assert network.head is not None, "a critic has a value head"
    base = _reference(path) if adapter else None
    description = described(run, key)
    means = ItemMeans(checkpoint.progress.item_means if settings.item_baseline else {})
    manifest = CriticManifest(
        **description,
        item_means=means.of_readers(description["readers"]),
        max_length=settings.longest_stream(read_config(path, "critic.path")),
        joint_actions=joint_actions,
        dtype=dtype or settings.dtype,
        weights="adapter" if adapter else "merged",
        base=base,
        **head_numbers(network.head),
    )
    save_critic(network, folder, dtype=manifest.dtype, base=base, pad=tokenizer.pad_token_id)
    save_tokenizer(tokenizer, folder)
    manifest.write(folder)
    return manifest


def described(run: ResolvedRun, key: NetworkKey) -> dict[str, Any]:
    """Return the manifest fields that a config determines: the critic's input, agents and predicted
    returns."""
    config, critic = run.config, run.parts.critic
    assert critic is not None, "a run with a value model has a critic"
    name, reads = named_part(critic)
    credit, credited = named_part(run.parts.credit)
    task = config.task.settings
    if config.wrapper is not None:
        task = {**task, "wrapper": config.wrapper.plain()}
    readers = critic.readers(run.agents)
    return {
        "value_model": key.model,
        "critic": name,
        "reads": reads,
        "agents": tuple(run.agents),
        "readers": {r: tuple(a) for r, a in readers.items() if run.value_models[r] == key.model},
        "horizon": run.task.horizon,
        "task": config.task.name,
        "task_settings": task,
        "algorithm": config.algorithm.name,
        "credit": {"name": credit, **credited} if credited else credit,
        "discount": run.parts.discount,
    }


def _reference(path: str) -> str:
    """Return the reference to an adapter's base model: a hub name, or a folder's absolute path."""
    return str(Path(path).resolve()) if Path(path).is_dir() else path
