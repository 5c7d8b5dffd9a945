"""Weight updates from a learner to a generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightUpdate:
    """A model's weights after `version` optimiser steps, as whole tensors on every process.

    The tensors may be the live ones: whoever keeps them beyond the call copies them.
    """

    version: int
    full: Mapping[str, Tensor] | None = None
    """The base's own weights by checkpoint name, a tied one under every name that it has; None
    where an adapter is trained."""
    adapters: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """By the adapter's name, its weights as peft's files name them."""


Publish = Callable[[], WeightUpdate]
"""Makes an update from the weights as they are now; every process calls it."""
