"""Extrapolates the peak memory of a deep model from two rehearsals: one with two of the model's
layers and one with three.

In each stage of a pass, each additional layer of the same kind raises the peak by the same number
of bytes. Before the backward pass reaches the layers, these bytes hold saved activations or a
cache; after the backward pass has left them, they hold gradients. Two short rehearsals therefore
give the peak of each stage at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from colearn.models.base import Base

from .ledger import Ledger

_SHALLOW = 2
"""Number of layers in the smaller rehearsal: a first and a last layer. The larger rehearsal adds
one inner layer."""


def peak_of(ledger: Ledger, base: Base, rehearse: Callable[[], None]) -> int:
    """Return the peak number of bytes that `rehearse` would add to the live bytes at the model's
    full depth. Call this function inside a rehearsal. `rehearse` must end the ledger's stages and
    leave no tensor behind."""
    before = ledger.live

    def stages() -> list[int]:
        ledger.begin()
        rehearse()
        return [peak - before for peak in ledger.stages]

    depth = len(layers_of(base))
    if depth <= _SHALLOW + 1 or not _are_equal(base):
        return max(stages())
    with _cut(base, _SHALLOW):
        shallow = stages()
    with _cut(base, _SHALLOW + 1):
        deeper = stages()
    return max(
        low + (depth - _SHALLOW) * (high - low) for low, high in zip(shallow, deeper, strict=True)
    )


def layers_of(base: Base) -> nn.ModuleList:
    """The decoder's layers that a forward pass enters."""
    depth = base.config.num_hidden_layers
    for module in base.causal.get_decoder().children():
        if isinstance(module, nn.ModuleList) and len(module) >= depth:
            return module[:depth]
    return nn.ModuleList()


@contextmanager
def marked_layers(ledger: Ledger, base: Base) -> Iterator[None]:
    """Context that ends a stage when a forward pass leaves the layers, and when the backward pass
    enters and leaves them."""

    def end_stage(_: object) -> None:
        ledger.end_stage()

    def mark(tensor: object) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            tensor.register_hook(end_stage)

    def end_forward(_: object, __: object, output: object) -> None:
        ledger.end_stage()  # what follows does not grow with the layers
        mark(output[0] if isinstance(output, tuple) else output)

    layers = layers_of(base)
    handles: list[RemovableHandle] = []
    if len(layers):
        handles = [
            layers[0].register_forward_pre_hook(lambda _, inputs: mark(inputs[0])),
            layers[-1].register_forward_hook(end_forward),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _are_equal(base: Base) -> bool:
    """Whether all layers have the same attention type and weights of the same shapes."""
    kinds = getattr(base.config, "layer_types", None) or ()
    shapes = {
        tuple((name, weight.shape, weight.dtype) for name, weight in layer.named_parameters())
        for layer in layers_of(base)
    }
    return len(set(kinds)) <= 1 and len(shapes) == 1


@contextmanager
def _cut(base: Base, depth: int) -> Iterator[None]:
    """Context in which a forward pass runs only the first `depth` layers."""
    config, full_depth = base.config, base.config.num_hidden_layers
    config.num_hidden_layers = depth
    try:
        yield
    finally:
        config.num_hidden_layers = full_depth
