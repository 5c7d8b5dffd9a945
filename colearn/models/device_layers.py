"""Inference layers for accelerators, where kernel launches dominate the cost of a token.

Linear layers keep their weights in the compute type instead of casting them in every pass. A norm
runs as one kernel. The adapters of a layer take two matrix multiplications in total, even in a
mixed batch of agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from .adapters import NO_ADAPTER, Adapted
from .lean_layers import norm_kind

Forward = Callable[..., Tensor]


class DeviceLayers:
    """Inference-only forward functions for the layers of a base. The functions copy weights on
    first use; the copies are valid until a weight changes."""

    def __init__(self, base: Adapted, compute: torch.dtype) -> None:
        from peft.tuners.lora import Linear

        self.selection = _Selection(base)
        self._forwards: list[tuple[nn.Module, Forward]] = []
        for layer in base.model.modules():
            if _plain(layer):
                self._forwards.append((layer, _linear(layer, compute)))
            elif type(layer) is Linear and not layer.lora_variant and not layer.merged:
                self._forwards.append((layer, _adapted(layer, compute, self.selection)))
            elif (kind := norm_kind(type(layer))) is not None:
                self._forwards.append((layer, _norm(layer, kind == "gemma", compute)))

    @property
    def masks(self) -> RowMasks | None:
        """Masks of the selected adapters by row; None if all rows use one adapter or none."""
        return self.selection.masks

    @contextmanager
    def used(self) -> Iterator[None]:
        """Context in which the layers run through these functions, with the currently selected
        adapters."""
        self.selection.read()
        before = [layer.__dict__.get("forward") for layer, _ in self._forwards]
        for layer, forward in self._forwards:
            layer.__dict__["forward"] = forward
        try:
            yield
        finally:
            for (layer, _), earlier in zip(self._forwards, before, strict=True):
                del layer.__dict__["forward"]
                if earlier is not None:
                    layer.__dict__["forward"] = earlier


def compute_bytes(model: nn.Module, compute: torch.dtype) -> int:
    """Number of bytes of the copies in the compute type. Only linear weights stored in another type
    are copied."""
    return sum(
        layer.weight.numel() * compute.itemsize
        for layer in filter(_plain, model.modules())
        if layer.weight.dtype != compute
    )


Columns = tuple[tuple[str, int], ...]
"""Name and rank of each adapter of a layer, in the order in which the adapters' factors are
stacked."""


@dataclass
class _Selection:
    """Which adapter each row of the running batch uses."""

    base: Adapted
    rows: tuple[str, ...] | None = None
    """Adapter name of each row; None: all rows use `single`."""
    single: str | None = None
    _given: list[str] | None = None
    _masks: dict[Columns, Tensor] = field(default_factory=dict)

    def read(self) -> None:
        """Read which adapters are selected on the base. Masks are kept as long as the rows'
        adapters do not change."""
        adapters = self.base.row_adapters
        rows = None if adapters is None else tuple(adapters)
        if rows != self.rows:
            self.rows, self._masks = rows, {}
        self._given = adapters
        chosen = self.base.selected
        self.single = chosen if chosen is None or isinstance(chosen, str) else chosen[0]

    @property
    def masks(self) -> RowMasks | None:
        """The masks in use; None if all rows use one adapter or none."""
        return None if self.rows is None else RowMasks(self._masks)

    def mask(self, columns: Columns, like: Tensor) -> Tensor:
        """Mask [rows, columns] (columns: the ranks of all adapters, side by side): 1 if the column
        belongs to the row's adapter, else 0."""
        if self.base.row_adapters is not self._given:  # some rows of the batch, for the LM head
            self.read()
        mask = self._masks.get(columns)
        if mask is None:
            assert self.rows is not None
            mask = _mask(columns, self.rows, like)
            self._masks[columns] = mask
        return mask


@dataclass(frozen=True)
class RowMasks:
    """The masks [rows, columns] that a recorded pass reads."""

    _masks: Mapping[Columns, Tensor]

    def overwrite(self, adapters: Sequence[str | None]) -> None:
        """Let the pass's rows use these adapters."""
        rows = tuple(adapter or NO_ADAPTER for adapter in adapters)
        for columns, mask in self._masks.items():
            mask.copy_(_mask(columns, rows, mask))


def _mask(columns: Columns, rows: Sequence[str], like: Tensor) -> Tensor:
    numbers = {name: number for number, (name, _) in enumerate(columns)}
    owners = [number for number, (_, rank) in enumerate(columns) for _ in range(rank)]
    of_rows = [numbers.get(row, -1) for row in rows]
    # one copy to the device for both
    joined = torch.tensor([*of_rows, *owners], device=like.device)
    return (joined[: len(of_rows), None] == joined[None, len(of_rows) :]).to(like.dtype)


def _linear(layer: nn.Linear, compute: torch.dtype) -> Forward:
    weight: Tensor | None = None
    bias: Tensor | None = None

    def forward(states: Tensor) -> Tensor:
        nonlocal weight, bias
        if weight is None:
            weight = layer.weight.to(compute)
            bias = None if layer.bias is None else layer.bias.to(compute)
        return nn.functional.linear(states.to(compute), weight, bias)

    return forward


def _adapted(layer: Any, compute: torch.dtype, selection: _Selection) -> Forward:
    """A layer with adapters: y = x W + (x A · m) B, where A and B stack all adapters and m is 1 in
    the columns of each row's adapter. With few adapters, computing unused columns costs less than
    gathering factors by row."""
    columns: Columns = tuple((name, int(layer.r[name])) for name in layer.lora_A)
    slices: dict[str, slice] = {}
    first = 0
    for name, rank in columns:
        slices[name] = slice(first, first + rank)
        first += rank
    down: Tensor | None = None
    up: Tensor | None = None

    def forward(states: Tensor, *_: Any, **__: Any) -> Tensor:
        nonlocal down, up
        states = states.to(compute)
        result: Tensor = layer.base_layer(states)
        mixed = selection.base.row_adapters is not None
        if not mixed and selection.single not in slices:
            return result
        if down is None or up is None:
            down = torch.cat([layer.lora_A[name].weight for name, _ in columns]).to(compute)
            scaled = [layer.lora_B[n].weight * layer.scaling[n] for n, _ in columns]
            up = torch.cat(scaled, 1).T.to(compute).contiguous()
        # a decoding step's single adapter reads its own columns
        part = slice(None) if mixed else slices[selection.single or NO_ADAPTER]
        low = nn.functional.linear(states, down[part])
        if mixed:
            mask = selection.mask(columns, low)
            low = low * (mask[:, None] if low.dim() == 3 else mask)
        width = result.shape[-1]
        return result.view(-1, width).addmm_(low.view(-1, low.shape[-1]), up[part]).view_as(result)

    return forward


def _norm(norm: Any, shifted: bool, compute: torch.dtype) -> Forward:
    """Return a forward function for an RMSNorm with sums in float32. The function rounds float32
    states to the compute type once, so that the following linear layers need not round them
    again."""
    exact: Tensor | None = None

    def forward(states: Tensor) -> Tensor:
        nonlocal exact
        if exact is None:
            exact = 1.0 + norm.weight.float() if shifted else norm.weight
        eps = norm.eps if shifted else norm.variance_epsilon
        size = (states.shape[-1],)
        with torch.autocast(states.device.type, enabled=False):
            if states.dtype == exact.dtype:
                normed = nn.functional.rms_norm(states, size, exact, eps)
                return normed.to(compute) if states.dtype == torch.float32 else normed
            normed = nn.functional.rms_norm(states.float(), size, exact.float(), eps)
        return normed.type_as(states) if shifted else normed

    return forward


def _plain(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether the layer is an unmodified `nn.Linear`, so that a call only multiplies by the weights
    and adds the bias."""
    return type(layer) is nn.Linear and "forward" not in layer.__dict__
