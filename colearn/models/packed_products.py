"""Linear layers on oneDNN with weights in its blocked layout: inference with few rows on a CPU.

torch's own product packs the weights anew in every call, which costs as much as the product where
rows are few. Values differ from torch's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeGuard

import torch
from torch import Tensor, nn

SMALLEST = 2**16
"""Weights of the smallest layer for which a call of oneDNN costs less than it saves."""

PATIENCE = 8
"""Calls of a layer before it is packed: a few calls do not earn the copy."""

PACKED_BYTES = 2**28
"""Most memory of packed copies of one model. Layers beyond it run on oneDNN with plain weights."""


class PackedProducts:
    """The linear layers of a model, each packed once it has been used several times.

    Its last reference frees the copies: in a reference cycle they would be kept through updates,
    until Python's garbage collector runs.
    """

    def __init__(self, model: nn.Module) -> None:
        copies = _Copies()
        self._copies = copies
        self._forwards = [
            (layer, _forward(layer, copies)) for layer in model.modules() if _eligible(layer)
        ]

    @property
    def bytes(self) -> int:
        """Allocated for packed copies."""
        return self._copies.bytes

    @contextmanager
    def used(self) -> Iterator[None]:
        """Run the layers on oneDNN; for inference only, as no gradient passes."""
        for layer, forward in self._forwards:
            layer.__dict__["forward"] = forward
        try:
            yield
        finally:
            for layer, _ in self._forwards:
                del layer.__dict__["forward"]


class _Copies:
    """Packs weights while there is room for them."""

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
    """Plain layers only: subclasses may compute something else, as may a patched forward."""
    return (
        type(layer) is nn.Linear
        and "forward" not in layer.__dict__
        and layer.weight.dtype == torch.float32
        and layer.weight.numel() >= SMALLEST
    )


def packed_bytes(model: nn.Module) -> int:
    """Memory of the packed copies of a model's layers, once all are used."""
    total = 0
    for layer in filter(_eligible, model.modules()):
        size = layer.weight.numel() * layer.weight.element_size()
        total += size if total + size <= PACKED_BYTES else 0
    return total


def worthwhile(device: torch.device, compute: torch.dtype) -> bool:
    """Whether this machine has the kernels: float32 on an x86 CPU."""
    return (
        device.type == "cpu"
        and compute == torch.float32
        and torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    )
