"""Weights in vLLM: the folders that it loads, versions of adapters, and the engine class that vLLM
in this process and vLLM servers share."""

from __future__ import annotations

import copy
import shutil
import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from colearn.contract import WeightUpdate
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights, each_once, plain_weights
from colearn.rollout.agents import AgentSpec

from .checked_engine import CheckedEngine
from .vllm_options import LOWEST_TEMPERATURE, adapters_of, slots_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ZEROS = "zeros"


class LoadedAdapter(NamedTuple):
    """One version of an adapter in vLLM."""

    adapter: str
    """Name of the adapter in the run."""
    name: str
    """Name of the version in vLLM."""
    number: int
    """A number from 1 that no other version has."""
    folder: str
    """Peft folder of the version."""


class VLLMCopy(CheckedEngine):
    """An engine whose copy of the weights is in vLLM, in this process or in servers.

    Files for vLLM are written to a temporary folder, below `folder` if a folder is given. Each
    version of an adapter has a separate name, and the previous version is unloaded. Roles without
    an adapter use an adapter with zero weights if other roles have adapters: on the CPU, vLLM 0.32
    applies another row's adapter to a row without one (vllm#48421).
    """

    lowest_temperature = LOWEST_TEMPERATURE

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        *,
        tolerance: float | None,
        folder: str | None = None,
    ) -> None:
        super().__init__(base, roles, tolerance=tolerance)
        self._folder = _weights_folder(folder)
        self.run = uuid.uuid4().hex[:12]
        """Part of each adapter's name, which distinguishes different runs on one server."""
        self.sleeps = self.asleep = False
        """`sleeps`: whether vLLM releases its memory in `rest`."""
        self.adapters = adapters_of(roles)
        self.loaded_adapters: dict[str, LoadedAdapter] = {}
        """The current version of each adapter."""
        self._versions_written = 0

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @abstractmethod
    def load_full(self, weights: Mapping[str, Tensor]) -> None:
        """Load full weights, named as in `handed`, and clear the prefix cache."""

    @abstractmethod
    def load_adapter(self, adapter: LoadedAdapter) -> None: ...

    @abstractmethod
    def unload_adapter(self, adapter: LoadedAdapter) -> None: ...

    @abstractmethod
    def fall_asleep(self) -> None:
        """Move the weights to CPU memory and free the cache."""

    @abstractmethod
    def wake_up(self) -> None: ...

    def begin_adapters(self) -> None:
        """Load all adapters from the live weights."""
        for name in self.adapters:
            self._load_version(name, name, adapter_weights(self.base, name))
        if slots_of(self.roles) > len(self.adapters):
            first = self.adapters[0]
            like = adapter_weights(self.base, first)
            zeros = {key: torch.zeros_like(tensor) for key, tensor in like.items()}
            self._load_version(_ZEROS, first, zeros)

    def loaded_for(self, agent: str) -> LoadedAdapter | None:
        """Return the current version of an agent's adapter; None if its requests use the base
        without an adapter."""
        adapter = self.adapter(agent)
        return (
            self.loaded_adapters.get(_ZEROS) if adapter is None else self.loaded_adapters[adapter]
        )

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates; adapters that no role uses are ignored. An adapter's new version has a new
        name, so only full weights require an empty prefix cache."""
        self.wake()
        for update in updates:
            if update.full is not None:
                self.load_full(self.handed(update.full))
            for name, tensors in update.adapters.items():
                if name in self.adapters:
                    self._load_version(name, name, tensors)

    def rest(self) -> None:
        if self.sleeps and not self.asleep:
            self.fall_asleep()
            self.asleep = True

    def wake(self) -> None:
        """End the sleep, if any; called before requests and weights."""
        if self.asleep:
            self.wake_up()
            self.asleep = False

    def handed(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return full weights as vLLM needs them: a tied tensor once, except on the CPU. There a
        tied head keeps a packed copy, which vLLM makes anew from the head's own name only."""
        return weights if self.base.device.type == "cpu" else each_once(weights)

    def write_model(self) -> None:
        """Write the live model with its tokenizer to the folder with which vLLM starts."""
        tokenizer = next(iter(self.roles.values())).chat_format.tokenizer
        write_model(self.folder / "model", self.base, tokenizer)

    def _load_version(self, name: str, like: str, tensors: Mapping[str, Tensor]) -> None:
        """Load a new version of an adapter, with the settings of the adapter `like`, then unload
        the previous version."""
        self._versions_written += 1
        number = self._versions_written
        folder = self.folder / f"adapter-{number}"
        self.base.model.peft_config[like].save_pretrained(folder)
        _save(
            folder / "adapter_model.safetensors",
            {key: tensor.to("cpu").contiguous() for key, tensor in tensors.items()},
        )
        previous = self.loaded_adapters.get(name)
        new = LoadedAdapter(name, f"{self.run}-{name}-{number}", number, str(folder))
        self.load_adapter(new)
        self.loaded_adapters[name] = new
        if previous is not None:
            self.unload_adapter(previous)
            shutil.rmtree(previous.folder)


def _weights_folder(above: str | None) -> TemporaryDirectory[str]:
    """Creates the folder of weights, in `run.generator.folder` if it is set. Errors: ConfigError if
    that folder is missing or cannot be written."""
    try:
        return TemporaryDirectory(prefix="colearn-vllm-", dir=above)
    except OSError as error:
        if above is None:
            raise
        raise ConfigError(
            f"run.generator.folder: {above}: {error.strerror or error}; name a folder of this "
            "machine that can be written"
        ) from None


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


def _save(file: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, file, metadata={"format": "pt"})
