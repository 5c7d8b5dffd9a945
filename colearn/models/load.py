"""Loads base weights (only from safetensors files) and tokenizers; errors name the config key."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch import nn

from colearn.errors import ConfigError, reason_of
from colearn.programs.files.first_opening import check_model_files
from colearn.text.notes import note_once

from .adapter_folder import WEIGHTS, base_of, base_revision, bottom, is_adapter, tokenizer_path
from .base import Base
from .digests import settings_digests
from .hub_files import SETTINGS, model_folder
from .logit_check import check_logits
from .missing_folder import refuse_missing_folder
from .quantized import keep_layout, nf4
from .whole_weights import check_whole

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

ALIGNMENT = 64
"""Alignment of a tensor in bytes, as in torch's CPU allocator."""

_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def resolve_device(name: str, field: str = "run.device") -> torch.device:
    """Return the torch device with this name; 'auto' selects the first accelerator, or the CPU if
    there is no accelerator.

    Errors: ConfigError naming `field` if the machine has no such device.
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
    usable = torch.accelerator.is_available()
    accelerator = torch.accelerator.current_accelerator() if usable else None
    count = 0 if accelerator is None else torch.accelerator.device_count()
    if accelerator is None or accelerator.type != device.type or (device.index or 0) >= count:
        available = "cpu"
        if accelerator is not None:
            available += f" and {accelerator.type}:0 to {accelerator.type}:{count - 1}"
        raise ConfigError(
            f"{field}: no device {device} on this machine, which has {available}; use auto or one "
            "of these"
        )


def check_model(path: str, *, field: str) -> None:
    """Check that a folder or hub name has a config, a tokenizer and safetensors files, without
    loading them.

    Errors: ConfigError naming `field`.
    """
    from transformers.utils import has_file

    if is_adapter(path):
        tokenizer = load_tokenizer(tokenizer_path(path, field), field=field)
        with _reading(path, field), safe_open(Path(path) / WEIGHTS, framework="pt"):
            pass
        path = bottom(path, field)
    else:
        tokenizer = load_tokenizer(path, field=field)
    names = ("model.safetensors", "model.safetensors.index.json")
    config = read_config(path, field)
    check_vocabulary(tokenizer, config.get_text_config().vocab_size, field)
    with _reading(path, field):
        if not any(has_file(path, name) for name in names):
            raise OSError(f"none of {', '.join(names)}")
        index = Path(path) / names[1]  # absent if the path is a hub name
        if index.is_file():
            for name in sorted(set(json.loads(index.read_text())["weight_map"].values())):
                if not (index.parent / name).is_file():
                    raise OSError(f"{name} is missing")
        for file in sorted(Path(path).glob("*.safetensors")):
            with safe_open(file, framework="pt"):  # reads the header and checks the length
                pass


def read_config(path: str, field: str) -> PretrainedConfig:
    """Load a model's config.json. Errors: ConfigError naming `field`."""
    from transformers import AutoConfig

    with _reading(path, field):
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
        _check_sizes(config)
    return config


def _check_sizes(config: PretrainedConfig) -> None:
    """Errors: ValueError for a size below 1, with which transformers builds a model without that
    part."""
    text = config.get_text_config()
    for name in _SIZES:
        size = getattr(text, name, None)
        if isinstance(size, int) and size < 1:
            raise ValueError(f"{name} of config.json is {size}, must be 1 or more")


def load_tokenizer(path: str, *, field: str) -> PreTrainedTokenizerBase:
    """Load a tokenizer. If the pad token is missing, prints a note and uses the end token. Of
    several chat templates, the one named `default` is used, as in transformers.

    Errors: ConfigError naming `field`.
    """
    from transformers import AutoTokenizer

    with _reading(path, field):
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        template = tokenizer.chat_template
        if not isinstance(template, str | dict | None):
            raise ValueError(f"chat_template is a {type(template).__name__}, must be text")
        if not tokenizer.vocab_size:  # every text would be lost in silence
            raise ValueError("its tokenizer has no tokens but special ones")
    if isinstance(tokenizer.chat_template, dict) and "default" in tokenizer.chat_template:
        tokenizer.chat_template = tokenizer.chat_template["default"]
    if tokenizer.pad_token_id is None:
        end = tokenizer.eos_token
        tokenizer.pad_token = end
        note_once(f"{field}: {path} has no pad token; rows are filled with its end token {end!r}")
    return tokenizer


def load_end_ids(path: str, *, field: str) -> tuple[int, ...]:
    """Read the token ids that end an answer, in the order of the model's generation_config.json.
    Without that file, the ids are read from config.json, as in transformers and vLLM.

    Errors: ConfigError naming `field`.
    """
    from transformers import GenerationConfig
    from transformers.utils import has_file

    with _reading(path, field):
        if has_file(path, "generation_config.json"):
            generation = GenerationConfig.from_pretrained(path)
        elif has_file(path, "config.json"):
            generation = GenerationConfig.from_model_config(read_config(path, field))
        else:
            return ()
        ends = generation.eos_token_id
        listed = () if ends is None else tuple(ends) if isinstance(ends, list) else (ends,)
        for end in listed:
            if isinstance(end, bool) or not isinstance(end, int) or end < 0:
                raise ValueError(f"eos_token_id of the generation config holds {end!r:.40}, no id")
    return listed


class Tokenizers:
    """Cache of a run's tokenizers. Sharing them saves memory: a tokenizer with 256,000 tokens takes
    hundreds of megabytes."""

    def __init__(self) -> None:
        self._loaded: dict[str, PreTrainedTokenizerBase] = {}
        self._end_ids: dict[str, tuple[int, ...]] = {}

    def load(self, path: str, *, field: str) -> PreTrainedTokenizerBase:
        """Return the cached tokenizer; load it on first use. Errors: as `load_tokenizer`."""
        if path not in self._loaded:
            self._loaded[path] = load_tokenizer(path, field=field)
        return self._loaded[path]

    def end_ids(self, path: str, *, field: str) -> tuple[int, ...]:
        """Return the cached end ids; read them on first use. Errors: as `load_end_ids`."""
        if path not in self._end_ids:
            self._end_ids[path] = load_end_ids(path, field=field)
        return self._end_ids[path]


def load_base(
    path: str,
    *,
    compute: str,
    trained: bool,
    device: torch.device,
    field: str,
    head: bool = True,
    quantized: bool = False,
    adapted: bool = False,
) -> Base:
    """Load a base model. For full fine-tuning, weights stay float32 whatever the compute type. A
    frozen base is stored in the compute type or, if `quantized`, in 4 bits. Without `head` the LM
    head is dropped. `adapted`: if the path is an adapter's folder, the adapter is loaded onto its
    base but not merged.

    Errors: ConfigError naming `field` for a missing or unsafe (pickled) model, and for an
    architecture that cannot read packed trees (`check_logits`); MissingExtra.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    dtype = DTYPES[compute]
    revision = base_revision(path, field) if is_adapter(path) else None
    storage = {"quantization_config": nf4(dtype), "device_map": {"": device}} if quantized else {}
    with _reading(path, field), _quiet():
        model: Any
        model, loading = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=torch.float32 if trained else dtype,
            use_safetensors=True,
            trust_remote_code=False,  # code in a model folder is never executed
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            revision=revision,
            **storage,
        )
        _check_sizes(model.config)
        check_whole(model, loading, head=head)
        if hasattr(model, "peft_config") and not adapted:
            raise ValueError("it is an adapter; download it and name its folder")
    if not head:
        model.set_output_embeddings(nn.Identity())
    if quantized:
        keep_layout(model)
    else:
        model.to(device)
        _align(model)
    model.requires_grad_(trained)
    base = Base(model, dtype)
    with _reading(path, field):
        check_logits(base)
    return base


@torch.no_grad()
def _align(model: nn.Module) -> None:
    """Copy tensors whose offset in the file is not a multiple of 64 bytes, torch's alignment.

    On a CPU, matrix multiplications with unaligned weights are slower and round differently: a
    model read from a file would not match its in-memory copy bit for bit.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type == "cpu" and tensor.data_ptr() % ALIGNMENT:
            tensor.data = tensor.data.clone()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress transformers' printed tables of missing and mismatched weights, which `check_whole`
    reports."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def _reading(path: str, field: str) -> Iterator[None]:
    """Context that converts any error while loading a damaged file to a ConfigError."""
    refuse_missing_folder(path, field)
    try:
        _open_first(path, field)
        yield
    except (MemoryError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - damaged files raise nearly anything
        raise _no_model(path, field, error) from None


def _open_first(path: str, field: str) -> None:
    """Open a model's settings and tokenizer in a child process first.

    Errors: ValueError if opening the files takes too much time or memory; ConfigError naming
    `field` for an adapter without readable settings.
    """
    if not os.path.isdir(path):
        _fetch_settings(path)
    folder = model_folder(path)
    if folder is not None:
        check_model_files(folder, settings_digests(folder))
    if is_adapter(path) and (base := base_of(path, field)) != path:
        _open_first(base, field)


@lru_cache(maxsize=256)
def _fetch_settings(name: str) -> None:
    """Download a hub model's settings into the hub's cache, so that a child process can open them.
    Download errors are ignored here, because the loader reports them."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    with contextlib.suppress(OSError, HfHubHTTPError, HFValidationError):
        snapshot_download(name, allow_patterns=list(SETTINGS))


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, words: int, field: str) -> None:
    """Check that the model has an embedding for each token in the tokenizer's base vocabulary.

    `words` is the number of embeddings in the model. Ids of added tokens may exceed this number.
    Errors: ConfigError naming `field`.
    """
    if tokenizer.vocab_size > words:
        raise ConfigError(
            f"{field}: the tokenizer has {tokenizer.vocab_size} words and the model {words}; the "
            "folder's tokenizer belongs to another model"
        )


def _no_model(path: str, field: str, error: Exception) -> ConfigError:
    kind = "" if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: "
    return ConfigError(
        f"{field}: cannot load '{path[:200]}'; give a folder or hub name that holds config.json, "
        f"tokenizer and safetensors weights ({kind}{reason_of(error)})"
    )
