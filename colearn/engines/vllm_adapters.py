"""LoRA adapters in vLLM. Each version of an adapter has a separate name, and the previous version
is unloaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights
from colearn.rollout.agents import AgentSpec

from .model_folder import copy_adapter, write_adapter, write_adapter_weights, write_zeros
from .vllm_options import adapters_of, slots_of

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


class VLLMAdapters:
    """Writes the adapters of roles to `folder` and makes vLLM load them, by `load` and `unload`.

    `run` is part of each name and distinguishes different runs on one server. Roles without an
    adapter use an adapter with zero weights if other roles have adapters: on the CPU, vLLM 0.32
    applies another row's adapter to a row without one (vllm#48421).
    """

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        folder: Path,
        run: str,
        *,
        load: Callable[[LoadedAdapter], None],
        unload: Callable[[LoadedAdapter], None],
    ) -> None:
        self._base, self._folder, self._run = base, folder, run
        self.names = adapters_of(roles)
        self._zeros = slots_of(roles) > len(self.names)
        self._call_load, self._call_unload = load, unload
        self._count = 0
        self.loaded: dict[str, LoadedAdapter] = {}
        """The current version of each adapter."""

    def begin(self) -> None:
        """Load all adapters from the live weights. Errors: as for `load`."""
        for name in self.names:
            write_adapter(self._template(name).parent, self._base, name)
            self.write(name, adapter_weights(self._base, name))
        if self._zeros:
            folder = self._next_folder()
            write_zeros(self._template(self.names[0]), folder)
            self._load(_ZEROS, folder)

    def of(self, adapter: str | None) -> LoadedAdapter | None:
        """Return the current version of an adapter; None if requests use the base without an
        adapter."""
        return self.loaded.get(_ZEROS) if adapter is None else self.loaded[adapter]

    def write(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Load a new version of an adapter; ignores adapters that no role uses. Errors: as for
        `load`."""
        if name in self.names:
            folder = self._next_folder()
            copy_adapter(self._template(name), folder)
            write_adapter_weights(folder, tensors)
            self._load(name, folder)

    def _next_folder(self) -> Path:
        self._count += 1
        return self._folder / f"adapter-{self._count}"

    def _template(self, name: str) -> Path:
        """Return the peft folder with the settings that all versions of an adapter share; peft
        appends an adapter's name to the folder that it is given."""
        return self._folder / f"template-{self.names.index(name)}" / name

    def _load(self, name: str, folder: Path) -> None:
        """Load a new version under a new name, then unload the previous one."""
        previous = self.loaded.get(name)
        new = LoadedAdapter(name, f"{self._run}-{name}-{self._count}", self._count, str(folder))
        self._call_load(new)
        self.loaded[name] = new
        if previous is not None:
            self._call_unload(previous)
            shutil.rmtree(previous.folder)
