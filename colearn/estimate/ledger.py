"""Counts live bytes, launches and products while code runs on fake tensors, which allocate
nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

_aten = torch.ops.aten
_PRODUCTS = {
    **flop_registry,
    _aten._scaled_dot_product_flash_attention_for_cpu: flop_registry[
        _aten._scaled_dot_product_flash_attention
    ],
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: flop_registry[
        _aten._scaled_dot_product_flash_attention_backward
    ],
}
"""Functions that count the FLOPs of an operator. torch has none for attention on a CPU, whose
arguments are those of the operator on a GPU."""


class Cost(NamedTuple):
    """Work of a pass, on which its time depends."""

    launches: int
    """Number of operators, without views."""
    products: float
    """FLOPs of the matrix products and of attention."""


class Ledger(TorchDispatchMode):
    """Counts the bytes of all storages created in its context: `live` is the current number and
    `peak` the maximum. Views add no bytes. `launches` and `products` are those of `Cost`."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self.launches = 0
        self.products = 0
        self._bytes: dict[int, int] = {}

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operator is torch.ops.aten._grouped_mm.default:
            result = _grouped(operator, *args, **(kwargs or {}))
            self.products += 2 * args[0].numel() * result.shape[-1]
        else:
            result = operator(*args, **(kwargs or {}))
        self.launches += operator.namespace == "aten" and not operator.is_view
        count = _PRODUCTS.get(operator._overloadpacket)
        if count is not None:
            self.products += count(*args, **(kwargs or {}), out_val=result)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return result

    def begin(self) -> None:
        """Restart the peak at the live bytes, and the cost at zero."""
        self.peak = self.live
        self.launches = self.products = 0

    @property
    def cost(self) -> Cost:
        """Cost since `begin`."""
        return Cost(self.launches, self.products)

    def _note(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._bytes:
            return
        self._bytes[key] = storage.nbytes()
        self.live += self._bytes[key]
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.live -= self._bytes.pop(key)


def _grouped(operator: Any, left: Tensor, right: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Multiply the experts' fake tensors of any type. torch has kernels for them all, but gives the
    shape of the result for bfloat16 only."""
    result: Tensor = operator(left.bfloat16(), right.bfloat16(), *args, **kwargs)
    return result.to(left.dtype)


@contextmanager
def rehearsal() -> Iterator[Ledger]:
    """Context in which new tensors have no content; yields the ledger that counts their bytes."""
    # the ledger is not active in autograd's worker threads
    with FakeTensorMode(), Ledger() as ledger, torch.autograd.set_multithreading_enabled(False):
        yield ledger


def make_fake(module: nn.Module, device: torch.device) -> None:
    """Replace a module's meta tensors by fake tensors on `device`, inside a rehearsal."""
    fakes: dict[int, Any] = {}

    def fake(tensor: Tensor) -> Any:
        if id(tensor) not in fakes:
            empty = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
            fakes[id(tensor)] = (
                nn.Parameter(empty, requires_grad=tensor.requires_grad)
                if isinstance(tensor, nn.Parameter)
                else empty
            )
        return fakes[id(tensor)]

    for part in module.modules():
        for store in (part._parameters, part._buffers):
            for name, tensor in store.items():
                if tensor is not None:
                    store[name] = fake(tensor)
