"""Loading base weights and tokenizers: safetensors only, mistakes named by their config key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from colearn.errors import ConfigError

from .base import Base

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(name: str, field: str = "run.device") -> torch.device:
    """'auto' is the first accelerator, or the CPU.

    Errors: ConfigError naming `field` for a device that this machine does not have.
    """
    if name != "auto":
        try:
            device = torch.device(name)
        except RuntimeError:
            raise ConfigError(
                f"{field}: no such device '{name}'; use auto, cpu, cuda or cuda:1"
            ) from None
        if device.type != "cpu":
            _check_accelerator(device, field)
        return device
    if torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is not None:
            return accelerator
    return torch.device("cpu")


def _check_accelerator(device: torch.device, field: str) -> None:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    count = 0 if found is None else torch.accelerator.device_count()
    if found is None or found.type != device.type or (device.index or 0) >= count:
        here = "cpu" if found is None else f"cpu and {found.type}:0 to {found.type}:{count - 1}"
        raise ConfigError(
            f"{field}: no device {device} on this machine, which has {here}; use auto or one of "
            "these"
        )


def check_model(path: str, *, field: str) -> None:
    """Whether a folder or hub name holds config, tokenizer and safetensors; no weight is read.

    Errors: ConfigError naming `field`.
    """
    from transformers import AutoConfig
    from transformers.utils import has_file

    load_tokenizer(path, field=field)
    names = ("model.safetensors", "model.safetensors.index.json")
    try:
        AutoConfig.from_pretrained(path, trust_remote_code=False)
        whole = any(has_file(path, name) for name in names)
    except (OSError, ValueError) as error:
        raise _no_model(path, field, error) from None
    if not whole:
        raise _no_model(path, field, OSError(f"none of {', '.join(names)}"))


def load_tokenizer(path: str, *, field: str) -> PreTrainedTokenizerBase:
    """The tokenizer at a folder or hub name; a missing pad token becomes the end token."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise _no_model(path, field, error) from None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


class Tokenizers:
    """A run's tokenizers, each loaded once: one of 256,000 words takes hundreds of megabytes."""

    def __init__(self) -> None:
        self._loaded: dict[str, PreTrainedTokenizerBase] = {}

    def load(self, path: str, *, field: str) -> PreTrainedTokenizerBase:
        """As `load_tokenizer`."""
        if path not in self._loaded:
            self._loaded[path] = load_tokenizer(path, field=field)
        return self._loaded[path]


def load_base(
    path: str, *, compute: str, trained: bool, device: torch.device, field: str, head: bool = True
) -> Base:
    """A base model. All-weights training keeps float32 weights whatever the compute type; a
    frozen base is stored in the compute type. Without `head` the LM head is dropped.

    Errors: ConfigError naming `field` for a missing or unsafe (pickled) model.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    dtype = DTYPES[compute]
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=torch.float32 if trained else dtype,
            use_safetensors=True,
            trust_remote_code=False,  # a model is weights; its folder's code is not run
        )
    except (OSError, ValueError) as error:
        raise _no_model(path, field, error) from None
    if not head:
        model.set_output_embeddings(nn.Identity())
    model.to(device)
    model.requires_grad_(trained)
    return Base(model, dtype)


def _no_model(path: str, field: str, error: Exception) -> ConfigError:
    if path.startswith((".", "/", "~")) and not os.path.isdir(path):
        return ConfigError(f"{field}: no folder {path[:200]}; give a model's folder or hub name")
    reason = " ".join(str(error).split())[:160]
    return ConfigError(
        f"{field}: cannot load '{path[:200]}'; give a folder or hub name that holds config.json, "
        f"tokenizer and safetensors weights ({reason})"
    )
