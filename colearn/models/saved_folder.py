"""Saves models and tokenizers in folders that transformers 4 and 5 read alike.

transformers 5 renamed settings of config.json and tokenizer_config.json. Version 4 takes its
defaults for names that it does not find, without a message, and refuses a tokenizer class that it
does not know. So each renamed setting is written under both names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

NEEDS_5 = "needs transformers 5"
"""Written as the rotary base if version 4 has no names for the rotary settings: version 4 fails on
a text, and version 5 does not read this name beside its own."""

PROCESSORS = (
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
)
"""Files of models that read images, video or audio beside text."""

_FLAT = {"gpt_neox": ("rotary_emb_base", "rotary_pct")}
_FLAT["gpt_neox_japanese"] = _FLAT["gpt_neox"]
"""Names of the rotary base and of the rotated share in version 4, by model type, where they are not
rope_theta and partial_rotary_factor."""

_BY_LAYER = {
    "gemma3_text": ("rope_theta", "rope_local_base_freq"),
    "gemma3n_text": ("rope_theta", "rope_local_base_freq"),
    "olmo3": ("rope_theta", "rope_theta"),
    "modernbert-decoder": ("global_rope_theta",),
}
"""Names of the rotary bases of full and sliding layers in version 4, by model type. Version 4 does
not compute what version 5 does for a type with one name."""

_RENAMED = {"qwen3_moe": {"num_experts": "num_local_experts"}}
"""Other names of version 4 and their names in version 5, by model type."""

MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
"""Names of the number of layers for multi-token prediction."""


def save_model(model: Any, folder: Path) -> None:
    """Write config.json, generation_config.json and the weights of a transformers model. The config
    declares no layers that predict several tokens, if transformers has not loaded any."""
    model.save_pretrained(folder)
    kept = any("mtp" in name for name, _ in model.named_parameters())
    _edit(folder / "config.json", lambda config: _with_names_of_4(_stored(config, kept)))


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write the files of a tokenizer."""
    tokenizer.save_pretrained(folder)
    _edit(folder / "tokenizer_config.json", _tokenizer_of_both)


def copy_processors(path: str, folder: Path) -> None:
    """Copy the files that say how a model reads images, video or audio. `path`: the model's folder
    or hub name."""
    from transformers.utils import cached_file

    for name in PROCESSORS:
        file = cached_file(
            path,
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        if file is not None:
            shutil.copyfile(file, folder / name)


def read_by_4(folder: Path) -> bool:
    """Whether transformers 4 reads a saved model, if it has the architecture."""
    return NEEDS_5 not in (folder / "config.json").read_text(encoding="utf-8")


def _edit(file: Path, change: Any) -> None:
    config = change(json.loads(file.read_text(encoding="utf-8")))
    text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def _stored(config: dict[str, Any], kept: bool) -> dict[str, Any]:
    """Return a config, nested configs included, with 0 as the number of layers for
    multi-token prediction unless these are `kept`."""
    return {
        name: _stored(value, kept)
        if isinstance(value, dict)
        else 0
        if name in MTP and value and not kept
        else value
        for name, value in config.items()
    }


def _with_names_of_4(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config with the names of version 4 added, in nested configs too."""
    added: dict[str, Any] = {
        name: _with_names_of_4(value)
        for name, value in config.items()
        if isinstance(value, dict) and name != "rope_parameters"
    }
    kind = str(config.get("model_type"))
    if config.get("dtype") is not None:
        added["torch_dtype"] = config["dtype"]
    if isinstance(config.get("rope_parameters"), dict):
        added |= _rotary(config["rope_parameters"], kind)
    for old, new in _RENAMED.get(kind, {}).items():
        added[old] = config[new]
    return config | added


def _rotary(parameters: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return rotary settings under the names of version 4."""
    if not any(isinstance(value, dict) for value in parameters.values()):
        base, share = _FLAT.get(kind, ("rope_theta", "partial_rotary_factor"))
        named = {base: "rope_theta", share: "partial_rotary_factor"}
        settings = {old: parameters[new] for old, new in named.items() if new in parameters}
        return settings | _scaling(parameters, kind)
    layers = [parameters.get(name) or {} for name in ("full_attention", "sliding_attention")]
    full, sliding = layers
    names = _BY_LAYER.get(kind, ("rope_theta",))
    bases = dict(zip(names, (layer.get("rope_theta") for layer in layers), strict=False))
    same = len(set(names)) == 2 or full.get("rope_theta") == sliding.get("rope_theta")
    known = set(parameters) == {"full_attention", "sliding_attention"}
    if len(names) < 2 or not known or not same or None in bases.values() or _scaling(sliding, kind):
        return {names[0]: NEEDS_5}
    return bases | _scaling(full, kind)


def _scaling(parameters: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return `rope_scaling` of version 4; empty if the rotary frequencies are not scaled."""
    scaling = {
        name: value
        for name, value in parameters.items()
        if name not in ("rope_theta", "partial_rotary_factor")
    }
    if kind == "phi3" and scaling.get("rope_type") == "longrope":  # takes these three alone
        names = {"type": "rope_type", "short_factor": "short_factor", "long_factor": "long_factor"}
        return {"rope_scaling": {old: scaling[new] for old, new in names.items()}}
    return {} if scaling == {"rope_type": "default"} else {"rope_scaling": scaling}


def _tokenizer_of_both(config: dict[str, Any]) -> dict[str, Any]:
    """Return a tokenizer's config under names that both versions read."""
    if config.get("backend") == "tokenizers":  # both versions then do what tokenizer.json says
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(config.get("extra_special_tokens"), list):
        config["additional_special_tokens"] = config.pop("extra_special_tokens")
    return config
