"""Stands in for CUDA graphs on other devices: records operators with the tensors that they read and
write, and runs exactly these again.

As in a graph, numbers of the host are those of the recording, and what a replay writes it writes to
the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class OperatorRecorder:
    """A `GraphRecorder` of `colearn.engines.step_graphs`."""

    made = 0
    """Recordings of this process."""
    replayed = 0

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def record(self, run: Callable[[], Tensor]) -> Callable[[], Tensor]:
        OperatorRecorder.made += 1
        with _Operators() as operators:
            result = run()

        def replay() -> Tensor:
            OperatorRecorder.replayed += 1
            for operator, given, named, before in operators.calls:
                again = operator(*given, **named)
                for old, new in zip(tree_leaves(before), tree_leaves(again), strict=True):
                    if isinstance(old, Tensor) and old is not new and not _expanded(old):
                        old.copy_(new)
            return result

        return replay


class _Operators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = operator(*args, **(kwargs or {}))
        self.calls.append((operator, args, kwargs or {}, result))
        return result


def _expanded(tensor: Tensor) -> bool:
    """Whether elements share memory: a view, which shows what is written there anyway."""
    both = zip(tensor.stride(), tensor.shape, strict=True)
    return any(step == 0 and size > 1 for step, size in both)
