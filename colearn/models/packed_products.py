"""Runs linear layers on oneDNN, with weights in oneDNN's blocked layout, for CPU inference with few
rows.

torch's matrix multiplication packs the weights again in every call; with few rows, packing costs as
much as the multiplication. Values differ from torch's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeGuard

import torch
from torch import Tensor, nn

SMALLEST = 2**16
"""Minimum number of weights in a layer for which calling oneDNN saves time."""

PATIENCE = 8
"""Number of calls of a layer after which the layer's weights are packed. For fewer calls, packing
would cost more time than it saves."""

PACKED_BYTES = 2**28
"""Maximum memory in bytes of the packed copies of one model. Beyond this limit, layers run on
oneDNN with plain weights."""


class PackedProducts:
    """Packs the weights of a model's linear layers. The weights of a layer are packed after its
    first few calls (`PATIENCE`).

    Dropping the last reference to this object frees the copies. A reference cycle would keep the
    copies in memory during updates, until Python's garbage collector runs.
    """

    def __init__(self, model: nn.Module) -> None:
        copies = _Copies()
        self._copies = copies
        self._forwards = [
            (layer, _forward(layer, copies)) for layer in model.modules() if _eligible(layer)
        ]

    @property
    def bytes(self) -> int:
        """Bytes allocated for packed copies."""
        return self._copies.bytes

    @contextmanager
    def used(self) -> Iterator[None]:
        """Context in which the layers run on oneDNN. Only for inference, because no gradient is
        computed."""
        for layer, forward in self._forwards:
            layer.__dict__["forward"] = forward
        try:
            yield
        finally:
            for layer, _ in self._forwards:
                del layer.__dict__["forward"]


class _Copies:
    """Packs weights until the packed copies use `PACKED_BYTES` bytes."""

    def __init__(self) -> None:
        self.bytes = 0

    def packed(self, weight: Tensor) -> Tensor:
        size = weight.numel() * weight.element_size()
        if self.bytes + size > PACKED_BYTES:
            return weight
        self.bytes += size
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        return packed


def _forward(layer: nn.Linear, copies: _Copies) -> Callable[[Tensor], Tensor]:
    product = torch.ops.mkldnn._linear_pointwise
    weight: Tensor = layer.weight
    calls = 0

    def forward(states: Tensor) -> Tensor:
        nonlocal weight, calls
        calls += 1
        if calls == PATIENCE:
            weight = copies.packed(weight)
        result: Tensor = product(states, weight, layer.bias, "none", [], "")
        return result

    return forward


def _eligible(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether the layer is a plain linear layer. A subclass or a patched `forward` may compute
    something else."""
    return (
        type(layer) is nn.Linear
        and "forward" not in layer.__dict__
        and layer.weight.dtype == torch.float32
        and layer.weight.numel() >= SMALLEST
    )


def packed_bytes(model: nn.Module) -> int:
    """Memory in bytes of the packed copies of a model's layers, once all layers are packed."""
    total = 0
    for layer in filter(_eligible, model.modules()):
        size = layer.weight.numel() * layer.weight.element_size()
        total += size if total + size <= PACKED_BYTES else 0
    return total


def worthwhile(device: torch.device, compute: torch.dtype) -> bool:
    """Whether oneDNN has fast kernels for these layers. True for float32 layers on an x86 CPU."""
    return (
        device.type == "cpu"
        and compute == torch.float32
        and torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    )
