"""Merges an adapter into its base: a model in memory, or a folder, whose result is kept in
the cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from colearn.errors import ConfigError, reason_of
from colearn.programs.files.cache import cache_place, made_once
from colearn.programs.files.first_opening import remember_model_files
from colearn.text.notes import note

from .adapter_folder import adapter_base, bottom, is_adapter, tokenizer_path
from .digests import file_digests, settings_digests
from .load import load_base, load_tokenizer, read_config
from .saved_folder import copy_processors, save_model, save_tokenizer

_NAME = "merged"


def merged_folder(path: str, field: str) -> str:
    """If `path` is an adapter, return the folder of the base model with the adapter merged in
    float32. Any other path is returned unchanged.

    Errors: ConfigError naming `field` for an adapter that cannot be merged.
    """
    if not is_adapter(path):
        return path
    plain = bottom(path, field)
    if getattr(read_config(plain, field), "quantization_config", None) is not None:
        raise ConfigError(
            f"{field}: the adapter {path[:200]} is on {plain[:200]}, whose weights are quantised; "
            "name its unquantised base as base_model_name_or_path"
        )
    base = adapter_base(path, field, weights=True)
    key = json.dumps(file_digests(path, field), sort_keys=True).encode()
    name = f"merged-{hashlib.blake2b(key, digest_size=8).hexdigest()}"

    def merge(aside: Path) -> None:
        kept = cache_place(name)
        note(f"merges the adapter {path} into its base {base}, once; it is kept in {kept}")
        _write(path, merged_folder(base, field), aside, field)

    return str(made_once(name, f"the adapter {path} merged into its base", merge))


def _write(path: str, base: str, folder: Path, field: str) -> None:
    causal = load_base(
        base, compute="float32", trained=True, device=torch.device("cpu"), field=field
    ).causal
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters in them is checked
            merged_model = merged(_adapted(causal, path), _NAME)
        save_model(merged_model, folder)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged adapter raises nearly anything
        raise ConfigError(
            f"{field}: cannot merge the adapter {path[:200]} into its base {base[:200]} "
            f"({reason_of(error)}); merge them with peft and name the merged folder"
        ) from None
    save_tokenizer(load_tokenizer(tokenizer_path(path, field), field=field), folder)
    copy_processors(base, folder)
    settings = Path(path) / "generation_config.json"
    if settings.is_file():
        shutil.copy(settings, folder)
    remember_model_files(settings_digests(folder))


def _adapted(causal: Any, path: str) -> Any:
    """Load the base with the adapter. Errors: ValueError if the adapter does not fit the base."""
    from peft import PeftConfig, PeftModel

    model = PeftModel(causal, PeftConfig.from_pretrained(path), adapter_name=_NAME)
    if not hasattr(model, "merge_and_unload"):
        raise ValueError("its kind has no merge")
    loaded = model.load_adapter(path, adapter_name=_NAME, torch_device="cpu")
    for name in sorted(loaded.missing_keys):
        raise ValueError(f"no file holds {name.replace(f'.{_NAME}', '')}")
    for name in sorted(loaded.unexpected_keys):
        raise ValueError(f"the base has no place for {name.replace(f'.{_NAME}', '')}")
    return model


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
