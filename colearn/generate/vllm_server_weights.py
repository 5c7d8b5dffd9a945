"""Writes full weights or adapters to a vLLM server, from the first process of the run."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from colearn.contract import WeightUpdate
from colearn.models.base import Base
from colearn.models.weight_update import each_once, plain_weights

from .device_transfer import DeviceTransfer, Transfer
from .model_folder import write_weights
from .ranks import Ranks
from .served_adapters import ServedAdapters
from .server_answers import BadAnswer, CacheReset, read_as
from .server_link import ServerLink, ServerRefused


class ServedWeights:
    """Writes live weights and weight updates to a server, and tracks the version of the server's
    weights.

    The first process of `ranks` writes; the other processes wait and then receive the same state.
    Files are written to `folder`, which trainer and server share.
    """

    def __init__(
        self, link: ServerLink, base: Base, names: Sequence[str], folder: Path, ranks: Ranks
    ) -> None:
        self._link, self._base, self._names = link, base, names
        self._folder, self._ranks = folder, ranks
        self._run = uuid.uuid4().hex[:12]
        self._count = 0
        self._adapters = ServedAdapters(link, base, names, folder, self._run)
        self._transfer: DeviceTransfer | None = None
        self.version: str | None = None
        """Version name of the server's weights, unique to this run."""

    def begin(self, way: Transfer, *, zeros: bool) -> None:
        """Send the live weights to the server. From this call on, full weights are sent by the
        transfer method `way`. `zeros`: also load an adapter with zero weights for roles without an
        adapter.

        Errors: ServerLost, as for `write`.
        """
        self._by_first(partial(self._write_live, way, zeros))

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Send updates to the server. Errors: ServerLost if the server does not accept the
        weights."""
        self._by_first(partial(self._write_updates, updates))

    def served(self, adapter: str | None) -> str | None:
        """The server's name for an adapter; None if requests use the base without an adapter."""
        return self._adapters.served(adapter)

    def close(self, *, unload: bool) -> None:
        """End the transfer. `unload`: whether to also unload the run's adapters, for a server that
        continues to run."""
        if self._transfer is not None:
            self._transfer.close()
        if unload and self._ranks.first:
            self._adapters.unload()

    def _by_first(self, write: Callable[[], None]) -> None:
        def written() -> tuple[str | None, dict[str, str]]:
            write()
            return self.version, self._adapters.loaded

        self.version, self._adapters.loaded = self._ranks.by_first(written)

    def _write_live(self, way: Transfer, zeros: bool) -> None:
        if self._names:
            self._mark()
            self._adapters.begin(zeros=zeros)
            return
        weights = plain_weights(self._base)
        if way != "files":
            try:
                self._transfer = DeviceTransfer(way, self._link, self._base, weights)
            except ServerRefused as error:
                self._link.lost(f"does not join a transfer by {way} ({error})")
        self._write_full(weights)

    def _write_updates(self, updates: Sequence[WeightUpdate]) -> None:
        for update in updates:
            if update.full is not None:
                self._write_full(update.full)
            for name, tensors in update.adapters.items():
                self._adapters.write(name, tensors)

    def _write_full(self, weights: Mapping[str, Any]) -> None:
        self._count += 1
        try:
            if self._transfer is None:
                self._write_files(weights)
            else:
                self._transfer.send(weights)
            # a server that has loaded nothing yet may still answer from blocks of old weights
            if not read_as(CacheReset, self._post("/reset_prefix_cache")).success:
                self._link.lost("kept cache blocks of the old weights: other requests are running")
        except ServerRefused as error:
            self._link.lost(f"does not take the trained model's weights ({error})")
        except BadAnswer as error:
            self._link.lost(str(error))
        self._mark()

    def _write_files(self, weights: Mapping[str, Any]) -> None:
        """Send full weights as files. Errors: ServerRefused if the server does not accept the
        weights."""
        folder = self._folder / f"weights-{self._count}"
        # on the CPU a tied head keeps a packed copy, which is made anew from its own name only
        named = weights if self._base.device.type == "cpu" else each_once(weights)
        write_weights(folder, named, self._base.compute)
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        try:
            self._link.call("POST", "/collective_rpc", body)
        finally:
            shutil.rmtree(folder)

    def _mark(self) -> None:
        """Set a version name, which no other run uses, for the server's weights."""
        self.version = f"{self._run}-{self._count}"
        try:
            self._post("/update_weight_version", new_version=self.version)
        except ServerRefused as error:
            self._link.lost(f"does not take a version of its weights ({error})")

    def _post(self, path: str, **body: Any) -> Any:
        return self._link.call("POST", path, body)
