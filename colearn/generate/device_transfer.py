"""Transfer of full weights from the trainer's device to the server's device, by vLLM's transfer
engines.

`ipc` shares memory between processes on one device; `nccl` broadcasts to other devices. Neither has
been tested on hardware.
"""

from __future__ import annotations

import base64
import importlib.util
import pickle
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import torch
from torch import Tensor

from colearn.errors import ConfigError, MissingExtra
from colearn.models.base import Base
from colearn.models.weight_update import each_once

from .server_answers import ServerVersion, WorldSize, read_as
from .server_link import ServerLink
from .server_process import ServerStart, free_port

Transfer = Literal["files", "ipc", "nccl"]
FIELD = "run.generator.transfer"


@dataclass(frozen=True)
class TransferChoice:
    """A transfer method and the reason for choosing this method. The reason completes a printed
    sentence. The reason is empty if the method was configured or no other method was possible."""

    way: Transfer
    reason: str = ""


def transfer_to_start(base: Base, start: ServerStart, *, processes: int) -> TransferChoice:
    """Choose how full weights reach a server that the run starts.

    Errors: ConfigError or MissingExtra for a configured method that is not possible.
    """
    if start.transfer is not None:
        return TransferChoice(_possible(start.transfer, base, processes))
    missing = _missing(base)
    if missing is not None:
        return TransferChoice("files", missing)
    if start.gpus is not None:
        return TransferChoice("nccl", "the server has devices of its own")
    if processes > 1 or (base.device.index or 0) != 0:
        return TransferChoice("files", "the server and the processes take different devices")
    if any("parallel-size" in argument for argument in start.arguments):
        return TransferChoice("files", "the server takes several devices")
    return TransferChoice("ipc", "trainer and server share a device")


def transfer_to_running(
    base: Base, transfer: Transfer | None, served: str | None, *, processes: int
) -> TransferChoice:
    """Choose how full weights reach a running server whose transfer engine is `served`.

    Errors: as `transfer_to_start`; ConfigError for a server without the configured engine.
    """
    if transfer in ("ipc", "nccl") and transfer != served:
        raise ConfigError(
            f"{FIELD}: the server has no engine of {transfer}; restart it with "
            f'--weight-transfer-config \'{{"backend": "{transfer}"}}\', or set files'
        )
    if transfer is not None:
        return TransferChoice(_possible(transfer, base, processes))
    missing = _missing(base)
    if missing is not None:
        return TransferChoice("files", missing)
    if served == "nccl":
        return TransferChoice("nccl", "the server has its engine")
    if served == "ipc" and processes == 1:
        return TransferChoice("ipc", "the server has its engine")
    return TransferChoice("files", "the server has no engine that reaches it from here")


def _missing(base: Base) -> str | None:
    """Return the reason why weights cannot be transferred between devices; None if a transfer is
    possible. The reason is empty on a CPU, where no explanation is needed."""
    if base.device.type != "cuda":
        return ""
    if importlib.util.find_spec("vllm") is None:
        return "vLLM's package is not in the trainer's environment"
    return None


def _possible(way: Transfer, base: Base, processes: int) -> Transfer:
    if way == "files":
        return way
    if base.device.type != "cuda":
        raise ConfigError(
            f"{FIELD}: {way} sends from a CUDA device, and the model is on {base.device}; set files"
        )
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtra("vllm", "vllm")
    if way == "ipc" and processes > 1:
        raise ConfigError(
            f"{FIELD}: ipc sends from one process, and the run has {processes}; set nccl or files"
        )
    return way


class DeviceTransfer:
    """The trainer's side of vLLM's `ipc` or `nccl` engine. If the run has several processes, only
    the first process sends.

    `weights` are the live ones, with the names and shapes of all later ones: vLLM 0.33 reads these
    once, before the first `send`.

    Errors: ServerLost or ServerRefused, also in `send`, if the server does not participate;
    ConfigError for `nccl` between two versions of vLLM.
    """

    def __init__(
        self, way: Transfer, link: ServerLink, base: Base, weights: Mapping[str, Tensor]
    ) -> None:
        self._way, self._link, self._device = way, link, base.device
        self._source = LiveWeights(base.compute, each_once(weights))
        if way == "nccl":
            _check_version(link)
        workers = read_as(WorldSize, link.call("GET", "/get_world_size")).world_size
        with self._lost_by_engine(), _on(self._device):
            self._engine = trainer_engine(
                way, LinkClient(link), self._source, address=_address(link.url), workers=workers
            )

    def send(self, weights: Mapping[str, Tensor]) -> None:
        """Send full weights in the compute type; a tied tensor is sent only once."""
        self._source.weights = each_once(weights)
        with self._lost_by_engine(), _on(self._device):
            self._engine.send_weights()
        self._source.weights = {}

    def close(self) -> None:
        self._engine.shutdown()

    def _lost_by_engine(self) -> AbstractContextManager[None]:
        return _LostByEngine(self._link, self._way)


class _LostByEngine(AbstractContextManager[None]):
    """Context that converts an error of the transfer engine to ServerLost, because the
    communication group cannot be reused after an error."""

    def __init__(self, link: ServerLink, way: Transfer) -> None:
        self._link, self._way = link, way

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, RuntimeError | ValueError):
            reason = " ".join(str(error).split())[:200]
            self._link.lost(f"did not take the weights by {self._way} ({reason})")


@dataclass
class LiveWeights:
    """What vLLM's `ModuleSource` reads of a module: named tensors, here in the type `dtype`."""

    dtype: torch.dtype
    weights: Mapping[str, Tensor]

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in self.weights.items():
            yield name, tensor.detach().to(self.dtype)


class LinkClient:
    """vLLM's `VLLMWeightSyncClient` over a `ServerLink`. The link adds the bearer token and
    one-line errors.

    With `ipc`, memory handles are sent pickled, as in vLLM's client. The server unpickles these
    handles only with VLLM_ALLOW_INSECURE_SERIALIZATION=1.
    """

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._post("/init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._post("/start_weight_update", None)

    def update_weights(self, update_info: dict[str, Any] | list[dict[str, Any]]) -> None:
        is_list = isinstance(update_info, list)
        updates = update_info if isinstance(update_info, list) else [update_info]
        plain = [_plain(update) for update in updates]
        self._post("/update_weights", {"update_info": plain if is_list else plain[0]})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        version = None if weight_version is None else {"weight_version": weight_version}
        self._post("/finish_weight_update", version)

    def _post(self, path: str, body: Any) -> None:
        self._link.call("POST", path, body)


def trainer_engine(
    way: Transfer, client: LinkClient, weights: LiveWeights, *, address: str, workers: int
) -> Any:
    """Create vLLM's trainer-side engine, connected to the server's `workers` processes; `address`
    is this machine's address as the server sees it."""
    from vllm.distributed.weight_transfer.base import ModuleSource
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

    info: Any
    if way == "ipc":
        from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

        info = IPCTrainerInitInfo(rank=0, packed=True)
    else:
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        info = NCCLTrainerInitInfo(
            master_address=address, master_port=free_port(), world_size=1 + workers, rank=0
        )
    # a source of our own would have to differ between vLLM 0.32 and 0.33
    source = ModuleSource(weights)
    return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)


def _check_version(link: ServerLink) -> None:
    """Check that the server has the trainer's version of vLLM. vLLM 0.33 sends names and shapes by
    `nccl` only once, and an earlier server would wait for them without end.

    Errors: ConfigError.
    """
    from vllm import __version__ as trainer_version

    served = read_as(ServerVersion, link.call("GET", "/version")).version
    if served != trainer_version:
        raise ConfigError(
            f"{FIELD}: nccl needs one version of vLLM on both sides, and the server at {link.url} "
            f"has {served}, the trainer {trainer_version}; install the same, or set files"
        )


def _plain(update: dict[str, Any]) -> dict[str, Any]:
    handles = update.get("ipc_handles")
    if handles is None:
        return update
    fields = {name: value for name, value in update.items() if name != "ipc_handles"}
    return fields | {"ipc_handles_pickled": base64.b64encode(pickle.dumps(handles)).decode()}


def _address(url: str) -> str:
    """Return this machine's address on the route to a server, without sending a packet."""
    place = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((place.hostname or "127.0.0.1", place.port or 80))
        address: str = probe.getsockname()[0]
    return address


def _on(device: torch.device) -> AbstractContextManager[Any]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
