"""Writes the folders that an engine loads: a model with its tokenizer, and peft adapters."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from colearn.models.base import Base
from colearn.models.weight_update import each_once, plain_weights

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ADAPTER_WEIGHTS = "adapter_model.safetensors"


def write_model(folder: Path, base: Base, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write the live model as a checkpoint in its compute type, with its tokenizer."""
    config = copy.deepcopy(base.causal.config)
    config.architectures = [type(base.causal).__name__]
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_weights(folder, each_once(plain_weights(base)), base.compute)


def write_weights(folder: Path, weights: Mapping[str, Tensor], dtype: torch.dtype) -> None:
    """Write only the full weights, under all of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    _save(
        folder / "model.safetensors",
        {name: tensor.detach().to("cpu", dtype).clone() for name, tensor in weights.items()},
    )


def write_adapter(folder: Path, base: Base, name: str) -> Path:
    """Write a live adapter below `folder`; returns its peft folder."""
    base.model.save_pretrained(folder, selected_adapters=[name], save_embedding_layers=False)
    return folder / name


def write_adapter_weights(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Replace the weights in a peft folder; the folder's settings are unchanged."""
    _save(
        folder / _ADAPTER_WEIGHTS,
        {key: tensor.to("cpu").contiguous() for key, tensor in tensors.items()},
    )


def copy_adapter(source: Path, folder: Path) -> None:
    """Copy a peft folder, weights included."""
    shutil.copytree(source, folder)


def write_zeros(adapter: Path, folder: Path) -> None:
    """Write a copy of an adapter in which all weights are zero."""
    copy_adapter(adapter, folder)
    weights = load_file(adapter / _ADAPTER_WEIGHTS)
    write_adapter_weights(
        folder, {name: torch.zeros_like(weight) for name, weight in weights.items()}
    )


def _save(file: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, file, metadata={"format": "pt"})
