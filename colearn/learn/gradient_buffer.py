"""One allocation for all gradients of a network on the CPU.

Backward passes allocate each gradient among activations that are freed before it. The C library
then keeps the space between gradients for the process: about a third of a large update's peak.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

LARGE = 2**22
"""Trained parameters from which a buffer is used: smaller models take less memory than Python."""

_ALIGNED = 16
"""Elements: gradients begin at multiples of 64 bytes, as torch's own tensors do."""


class GradientBuffer:
    """Gradients of one dtype as views of a tensor that exists from a network's first backward pass
    to its step."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self._reached: set[Tensor] = set()
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self._reached.add)

    def allocate(self) -> None:
        """Begin with zeros, unless gradients have been accumulated."""
        if any(parameter.grad is not None for parameter in self.parameters):
            return
        starts, size = [], 0
        for parameter in self.parameters:
            starts.append(size)
            size += -(-parameter.numel() // _ALIGNED) * _ALIGNED
        flat = self.parameters[0].new_zeros(size, requires_grad=False)
        for parameter, start in zip(self.parameters, starts, strict=True):
            parameter.grad = flat[start : start + parameter.numel()].view_as(parameter)

    def drop_unreached(self) -> None:
        """Remove the zeros of parameters that no backward pass has reached: an optimiser would
        still apply weight decay and momentum to them."""
        for parameter in self.parameters:
            if parameter not in self._reached:
                parameter.grad = None
        self._reached.clear()


def gradient_buffer(parameters: Sequence[nn.Parameter]) -> GradientBuffer | None:
    """A buffer, or None for small models and other devices."""
    if sum(parameter.numel() for parameter in parameters) < LARGE:
        return None
    kinds = {(parameter.device.type, parameter.dtype) for parameter in parameters}
    return GradientBuffer(parameters) if kinds == {("cpu", torch.float32)} else None
