"""Activation checkpointing: decoder layers save only their inputs and run again in the backward
pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer


def checkpointed_layers(model: nn.Module) -> list[nn.Module]:
    """The layers that transformers can checkpoint; empty if the architecture has none."""
    return [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]


@contextmanager
def recomputing(
    model: nn.Module, context: Callable[[], AbstractContextManager[None]]
) -> Iterator[None]:
    """Context in which forward passes checkpoint their layers. The context that `context` returns
    is active during the second run of the layers, in the backward pass.

    transformers' own setting works only in training mode, in which dropout is active. In colearn,
    models stay in evaluation mode, so both runs of a layer are identical even if the random state
    is not saved.
    """
    run = partial(
        checkpoint,
        use_reentrant=False,
        preserve_rng_state=False,
        context_fn=lambda: (nullcontext(), context()),
    )
    with ExitStack() as stack:
        for layer in checkpointed_layers(model):
            layer.forward = partial(run, layer.forward)
            stack.callback(delattr, layer, "forward")
        yield
