"""Builds config sections for models. Models that are already loaded are saved in the cache under
their digest, so that a run can be resumed without the model objects."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from colearn.config import EACH
from colearn.errors import ConfigError
from colearn.programs.files.cache import cache_place, made_once

_DTYPES = ("bfloat16", "float16")


def models_section(models: Any) -> dict[str, Any]:
    """A config's `models`. Errors: ConfigError for a value that is not a model."""
    if models is None:
        return {}
    if isinstance(models, Mapping) and "path" not in models:
        return {str(name): model_section(model, f"models.{name}") for name, model in models.items()}
    return {EACH: model_section(models, "models")}


def model_section(model: Any, field: str) -> dict[str, Any]:
    """Returns the section of one model or of the critic. Errors: ConfigError naming `field`."""
    if isinstance(model, BaseModel):
        return model.model_dump(mode="json", exclude_unset=True)
    if isinstance(model, Mapping):
        path = model.get("path")
        return {**_pathed(path, f"{field}.path"), **{k: v for k, v in model.items() if k != "path"}}
    return _pathed(model, field)


def _pathed(path: Any, field: str) -> dict[str, Any]:
    if path is None:
        return {}
    if isinstance(path, str | Path):
        return {"path": str(path)}
    if not (isinstance(path, tuple | list) and len(path) == 2):
        raise ConfigError(
            f"{field}: {type(path).__name__} is no model; give a path, or a transformers model "
            "with its tokenizer as (model, tokenizer)"
        )
    return _saved(path[0], path[1], field)


def _saved(model: Any, tokenizer: Any, field: str) -> dict[str, Any]:
    """Saves a loaded model once. Returns the path of the saved model, and the model's compute type
    if this type is not float32."""
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from colearn.models.digests import file_digests
    from colearn.models.saved_folder import save_model, save_tokenizer

    if not isinstance(model, PreTrainedModel) or not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise ConfigError(
            f"{field}: ({type(model).__name__}, {type(tokenizer).__name__}) is no transformers "
            "model with its tokenizer; give these two, an adapter merged or as a folder"
        )
    _check_can_be_saved(model, field)
    above = cache_place("objects/model").parent
    with tempfile.TemporaryDirectory(prefix=".saving-", dir=above) as place:
        folder = Path(place) / "model"
        try:
            save_model(model, folder)
        except ValueError as error:  # settings of its generation_config that contradict each other
            reason = " ".join(str(error).split())
            raise ConfigError(f"{field}: the model cannot be saved: {reason:.200}") from None
        save_tokenizer(tokenizer, folder)
        digests = json.dumps(file_digests(str(folder), field), sort_keys=True)
        name = f"{type(model).__name__}-{hashlib.sha256(digests.encode()).hexdigest()[:16]}"
        final = made_once(f"objects/{name}", "the same model", folder.rename)
    dtype = str(model.dtype).removeprefix("torch.")
    return {"path": str(final), **({"dtype": dtype} if dtype in _DTYPES else {})}


def _check_can_be_saved(model: Any, field: str) -> None:
    """Errors: ConfigError for a model without weights in memory, and for one that holds an adapter,
    since transformers would save the adapter alone, or weights under other names."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    if any(isinstance(module, BaseTunerLayer) for module in model.modules()):
        raise ConfigError(
            f"{field}: the model holds an adapter, which is not saved with its base; give it "
            "merged (peft's merge_and_unload), or the adapter as a folder"
        )
    offloaded = hasattr(model, "hf_device_map")
    if not offloaded and any(weight.is_meta for weight in model.parameters()):
        raise ConfigError(f"{field}: the model's weights are on the meta device; load them first")
