"""Transfer of full weights from the trainer's device to the server's devices, by vLLM's engine for
NCCL. It has not been tested on hardware.

On one device, the engine in this process (`vllm.py`) takes the weights by reference.
"""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import torch
from torch import Tensor

from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.weight_update import each_once
from colearn.text.notes import note

from .server_answers import ServerVersion, WorldSize, read_as
from .server_link import ServerLink
from .server_process import free_port

Transfer = Literal["files", "nccl"]
FIELD = "run.generator.transfer"


def chosen_transfer(base: Base, setting: Transfer | None, *, joins: bool) -> Transfer:
    """Choose how full weights reach a server, and print the choice if the setting leaves it open on
    a CUDA device. `joins`: whether the server has, or starts with, vLLM's NCCL engine.

    Errors: ConfigError for `nccl` if it is not possible.
    """
    if setting == "files":
        return "files"
    reason = ""
    if base.device.type != "cuda":
        reason = f"nccl sends from a CUDA device, and the model is on {base.device}"
    elif importlib.util.find_spec("vllm") is None:
        reason = "vLLM's package is not in the trainer's environment"
    elif not joins:
        reason = (
            "the server has no NCCL engine; give one that the run starts gpus of its own, or start "
            'yours with --weight-transfer-config \'{"backend": "nccl"}\''
        )
    if not reason:
        if setting is None:
            note(f"{FIELD}: nccl, because the server has its engine; files always works")
        return "nccl"
    if setting == "nccl":
        raise ConfigError(f"{FIELD}: {reason}; or set files")
    if base.device.type == "cuda":
        note(f"{FIELD}: files, because {reason}")
    return "files"


class DeviceTransfer:
    """The trainer's side of vLLM's NCCL engine. If the run has several processes, only the first
    process sends.

    `weights` are the live ones, with the names and shapes of all later ones: vLLM 0.33 reads these
    once, before the first `send`.

    Errors: ServerLost or ServerRefused, also in `send`, if the server does not participate;
    ConfigError for two versions of vLLM.
    """

    def __init__(self, link: ServerLink, base: Base, weights: Mapping[str, Tensor]) -> None:
        self._link, self._device = link, base.device
        self._source = LiveWeights(base.compute, each_once(weights))
        _check_version(link)
        workers = read_as(WorldSize, link.call("GET", "/get_world_size")).world_size
        with self._lost_by_engine(), _on(self._device):
            self._engine = trainer_engine(
                LinkClient(link), self._source, address=_address(link.url), workers=workers
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
        return _LostByEngine(self._link)


class _LostByEngine(AbstractContextManager[None]):
    """Context that converts an error of the transfer engine to ServerLost, because the
    communication group cannot be reused after an error."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, RuntimeError | ValueError):
            reason = " ".join(str(error).split())[:200]
            self._link.lost(f"did not take the weights by nccl ({reason})")


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
    one-line errors."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._post("/init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._post("/start_weight_update", None)

    def update_weights(self, update_info: dict[str, Any] | list[dict[str, Any]]) -> None:
        self._post("/update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        version = None if weight_version is None else {"weight_version": weight_version}
        self._post("/finish_weight_update", version)

    def _post(self, path: str, body: Any) -> None:
        self._link.call("POST", path, body)


def trainer_engine(client: LinkClient, weights: LiveWeights, *, address: str, workers: int) -> Any:
    """Create vLLM's trainer-side engine, connected to the server's `workers` processes; `address`
    is this machine's address as the server sees it."""
    from vllm.distributed.weight_transfer.base import ModuleSource
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
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


def _address(url: str) -> str:
    """Return this machine's address on the route to a server, without sending a packet."""
    place = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((place.hostname or "127.0.0.1", place.port or 80))
        address: str = probe.getsockname()[0]
    return address


def _on(device: torch.device) -> AbstractContextManager[Any]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
