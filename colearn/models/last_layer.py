"""Last decoder layer at read positions: an update reads few of the hidden states that it computes.

Other tokens attend to a position's keys and values in the last layer, but only the read positions
need its query, its attention's output and its MLP: a critic reads one position of each turn, an
actor those that predict its actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

WORTHWHILE = 2**28
"""Multiplications of a forward pass, from which selecting positions costs less than a twentieth of
what it saves. The passes of embedded models stay below."""


@contextmanager
def reading(layer: nn.Module, positions: Tensor) -> Iterator[None]:
    """Compute the layer's states at `positions` only, unique indices into the flattened [B, T]; the
    others are undefined, and no gradient passes through them."""
    modules = pointwise(layer)
    before = [module.__dict__.get("forward") for module in modules]
    for module in modules:
        module.__dict__["forward"] = _selecting(module.forward, positions)
    try:
        yield
    finally:
        for module, forward in zip(modules, before, strict=True):
            del module.__dict__["forward"]
            if forward is not None:
                module.__dict__["forward"] = forward


def saved(layer: nn.Module, unread: int) -> int:
    """Multiplications of a forward pass that `unread` positions do not need."""
    return unread * sum(
        parameter.numel() for module in pointwise(layer) for parameter in module.parameters()
    )


def pointwise(layer: nn.Module) -> list[nn.Module]:
    """The layer's modules that compute each position by itself, apart from keys, values and norms.
    An MLP counts if it ends in a projection: experts return more than states."""
    attention, mlp = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
    modules = [getattr(attention, name, None) for name in ("q_proj", "o_proj")]
    if isinstance(getattr(mlp, "down_proj", None), nn.Module):
        modules.append(mlp)
    return [module for module in modules if isinstance(module, nn.Module)]


def _selecting(forward: Callable[..., Tensor], positions: Tensor) -> Callable[..., Tensor]:
    def selected(states: Tensor, *given: Any, **settings: Any) -> Tensor:
        read = forward(states.flatten(0, 1)[positions], *given, **settings)
        everywhere = read.new_zeros((states.shape[0] * states.shape[1], read.shape[-1]))
        return everywhere.index_copy(0, positions, read).view(*states.shape[:2], -1)

    return selected
