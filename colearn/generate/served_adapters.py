"""Manages LoRA adapters on a vLLM server. Each version of an adapter has a separate name, and the
previous version is unloaded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from colearn.errors import ServerLost
from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights

from .model_folder import copy_adapter, write_adapter, write_adapter_weights, write_zeros
from .server_answers import BadAnswer, ListedModels, read_as
from .server_link import ServerLink, ServerRefused

_ZEROS = "zeros"
_LOAD, _UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"


class ServedAdapters:
    """Writes the adapters `names` of a base to `folder` and makes the server load them.

    `run` is part of each name and distinguishes different runs on one server.
    """

    def __init__(
        self, link: ServerLink, base: Base, names: Sequence[str], folder: Path, run: str
    ) -> None:
        self._link, self._base, self._names = link, base, tuple(names)
        self._folder, self._run = folder, run
        self._count = 0
        self.loaded: dict[str, str] = {}
        """Name of each adapter on the server."""

    def begin(self, *, zeros: bool) -> None:
        """Load all adapters from the live weights. With `zeros`, also load an adapter with zero
        weights for roles without an adapter.

        Errors: ServerLost, as in `write`.
        """
        for name in self._names:
            self._template(name)
            self.write(name, adapter_weights(self._base, name))
        if zeros:
            folder = self._next_folder()
            write_zeros(self._template(self._names[0]), folder)
            self._load(_ZEROS, folder)

    def served(self, adapter: str | None) -> str | None:
        """Return the server's name for an adapter; None if requests use the base without an
        adapter."""
        return self.loaded.get(_ZEROS) if adapter is None else self.loaded[adapter]

    def write(self, name: str, tensors: Mapping[str, Any]) -> None:
        """Load a new version of an adapter; ignores adapters that no role uses.

        Errors: ServerLost if the server does not accept the adapter.
        """
        if name in self._names:
            folder = self._next_folder()
            copy_adapter(self._template(name), folder)
            write_adapter_weights(folder, tensors)
            self._load(name, folder)

    def unload(self) -> None:
        """Unload all adapters that the server still holds."""
        for name in self.loaded.values():
            try:
                self._unload(name)
            except ServerRefused:
                continue  # the others may be unloaded nevertheless
            except ServerLost:
                break  # the server is gone, and its adapters with it
        self.loaded = {}

    def _next_folder(self) -> Path:
        self._count += 1
        return self._folder / f"adapter-{self._count}"

    def _template(self, name: str) -> Path:
        """Return the peft folder with the settings that all versions of an adapter share."""
        folder = self._folder / f"template-{self._names.index(name)}"
        return folder / name if folder.exists() else write_adapter(folder, self._base, name)

    def _load(self, name: str, folder: Path) -> None:
        """Load a new version under a new name, then unload the previous one."""
        previous = self.loaded.get(name)
        served = f"{self._run}-{name}-{self._count}"
        try:
            self._change(_LOAD, {"lora_name": served, "lora_path": str(folder)}, present=True)
            self.loaded[name] = served
            if previous is not None:
                self._unload(previous)
        except ServerRefused as error:
            self._link.lost(f"does not take adapter '{name}' ({error})")

    def _unload(self, served: str) -> None:
        self._change(_UNLOAD, {"lora_name": served}, present=False)
        shutil.rmtree(self._folder / f"adapter-{served.rpartition('-')[2]}")

    def _change(self, path: str, body: Mapping[str, str], *, present: bool) -> None:
        """Add or remove one name in the server's list of adapters.

        If the connection ends before the answer, the link sends the request again. If the first
        request had succeeded, the server refuses the second request. This method therefore checks
        in the server's list of models whether the change was made.

        Errors: ServerRefused if the list of models does not show the requested change.
        """
        try:
            self._link.call("POST", path, body)
        except ServerRefused:
            if (body["lora_name"] in self._listed()) != present:
                raise

    def _listed(self) -> set[str]:
        """Names of the models and adapters that the server lists."""
        answer = self._link.call("GET", "/v1/models", timeout=30)
        try:
            return {model.id for model in read_as(ListedModels, answer).data}
        except BadAnswer as error:
            self._link.lost(str(error))
