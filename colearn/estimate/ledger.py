"""Counts live bytes while code runs on fake tensors, which allocate nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Ledger(TorchDispatchMode):
    """Counts the bytes of all storages created in its context: `live` is the current number and
    `peak` the maximum. Views add no bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._bytes: dict[int, int] = {}

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operator is torch.ops.aten._grouped_mm.default:
            result = _grouped(operator, *args, **(kwargs or {}))
        else:
            result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return result

    def begin(self) -> None:
        """Restart the peak at the live bytes."""
        self.peak = self.live

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
