"""Merges an adapter into its base."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn


def merged(model: Any, adapter: str) -> Any:
    """Merge `adapter` in a `PeftModel` and return the transformers model. `model` cannot be used
    afterwards.

    Embeddings and LM head are untied first: with tied weights, merging an adapter on one of the two
    layers would also change the other.
    """
    causal = model.get_base_model()
    _untie(causal)
    with warnings.catch_warnings():
        # peft warns of tied weights, which are untied by now
        warnings.filterwarnings("ignore", "Model with `tie_word_embeddings=True`")
        warnings.filterwarnings("ignore", "Input and output embeddings are no longer tied")
        merged_model = model.merge_and_unload(adapter_names=[adapter])
    # weights that an adapter stores whole (`modules_to_save`) may be one or two after the merge
    _say(
        merged_model,
        tied=merged_model.get_input_embeddings().weight
        is merged_model.get_output_embeddings().weight,
    )
    return merged_model


@torch.no_grad()
def _untie(causal: Any) -> None:
    """Give the LM head a separate weight if the adapter is on the head or on the embeddings."""
    embeddings, head = causal.get_input_embeddings(), causal.get_output_embeddings()
    layer = _own(head)
    if (layer is head and _own(embeddings) is embeddings) or layer.weight is not _own(
        embeddings
    ).weight:
        return
    layer.weight = nn.Parameter(
        layer.weight.detach().clone(), requires_grad=layer.weight.requires_grad
    )
    _say(causal, tied=False)


def _own(layer: Any) -> Any:
    """Return the model's original layer without peft's wrapper."""
    while hasattr(layer, "base_layer") or hasattr(layer, "original_module"):
        layer = getattr(layer, "base_layer", None) or layer.original_module
    return layer


def _say(causal: Any, *, tied: bool) -> None:
    """Set the config field for tied embeddings and LM head. A weights file stores a tied weight
    only once, under one of its names."""
    for config in (causal.config, causal.config.get_text_config()):
        config.tie_word_embeddings = tied
