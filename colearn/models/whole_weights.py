"""Checks that the weights of a model's files are those of its config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from .saved_folder import MTP


def check_whole(model: Any, loading: Mapping[str, Any], *, head: bool) -> None:
    """Errors: ValueError for a weight that is missing (its values would be random), has the wrong
    shape, or is left out of the model. A missing LM head is allowed if the head is dropped."""
    for name, stored, expected in sorted(loading["mismatched_keys"]):
        raise ValueError(
            f"{name} has shape {tuple(stored)} in the file and {tuple(expected)} by config.json"
        )
    dropped = set() if head else set(model.get_output_embeddings().parameters())
    parameters = dict(model.named_parameters())
    for name in sorted(loading["missing_keys"]):
        if parameters.get(name) not in dropped:
            raise ValueError(f"no file holds {name}")
    modules = dict(model.named_modules())
    config = model.config.get_text_config()
    for name in sorted(loading["unexpected_keys"]):
        if _is_left_out(name, modules, sum(getattr(config, count, None) or 0 for count in MTP)):
            raise ValueError(f"config.json describes a model without {name}, which a file holds")


def _is_left_out(name: str, modules: Mapping[str, nn.Module], further: int) -> bool:
    """Whether a file's tensor belongs to a part that the model has: a weight or a bias of one of
    its modules, or a layer behind its last one. Other parts, such as those for images, are not
    read, and neither are the `further` layers for multi-token prediction."""
    parent, _, leaf = name.rpartition(".")
    if leaf in ("weight", "bias") and hasattr(modules.get(parent), "weight"):
        return True
    *before, layer = parent.split(".")
    while before:
        layers = modules.get(".".join(before))
        if isinstance(layers, nn.ModuleList) and layer.isdecimal():
            return int(layer) >= len(layers) + further
        *before, layer = before
    return False
