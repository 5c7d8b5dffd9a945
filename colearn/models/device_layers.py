"""Inference layers for accelerators, where kernel launches dominate the cost of a token.

Linear layers keep their weights in the compute type instead of casting them in every pass. Layers
with one input, such as queries, keys and values, are one matrix multiplication, with the first
factors of all adapters; the second factors are another one, even in a mixed batch of agents. A norm
runs as one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from .adapters import NO_ADAPTER, Adapted
from .device_blocks import Forward, attention, beside, gated, is_linear, plain
from .lean_layers import norm_kind


class DeviceLayers:
    """Inference-only forward functions for the layers of a base. The functions copy weights on
    first use; the copies are valid until a weight changes."""

    def __init__(self, base: Adapted, compute: torch.dtype, cache: str) -> None:
        self.selection = _Selection(base)
        self._forwards: list[tuple[nn.Module, Callable[..., Any]]] = []
        for layer in base.model.modules():
            members = beside(layer)
            if members:
                product = _product(members, compute, self.selection)
                is_mlp = len(members) == 2
                together = gated(layer, product) if is_mlp else attention(layer, product, cache)
                self._forwards.append((layer, together))
            elif is_linear(layer):
                self._forwards.append((layer, _product([layer], compute, self.selection)))
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
    or stacked are copied, but of the latter not frozen ones in the compute type."""
    stacked = {id(one) for layer in model.modules() for one in beside(layer)}
    return sum(
        layer.weight.numel() * compute.itemsize
        for layer in filter(plain, model.modules())
        if layer.weight.dtype != compute or (id(layer) in stacked and layer.weight.requires_grad)
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
    owners = [numbers[name] for name, rank in columns for _ in range(rank)]
    of_rows = [numbers.get(row, -1) for row in rows]
    # one copy to the device for both
    joined = torch.tensor([*of_rows, *owners], device=like.device)
    return (joined[: len(of_rows), None] == joined[None, len(of_rows) :]).to(like.dtype)


def _product(layers: Sequence[Any], compute: torch.dtype, selection: _Selection) -> Forward:
    """The outputs of layers with one input, side by side: y = x W + (x A · m) B, where W, A and B
    stack the layers and all of their adapters, and m is 1 in the columns of each row's adapter. W
    and A are one matrix multiplication. With few adapters, computing unused columns costs less than
    gathering factors by row."""
    names = list(dict.fromkeys(name for layer in layers for name in getattr(layer, "lora_A", ())))
    adapted = [
        (name, layer) for name in names for layer in layers if name in getattr(layer, "lora_A", ())
    ]
    columns: Columns = tuple((name, int(layer.r[name])) for name, layer in adapted)
    plain = [getattr(layer, "base_layer", layer) for layer in layers]
    width = sum(layer.out_features for layer in plain)
    slices = {"": slice(None)}
    """Columns of each adapter; of all adapters for a mixed batch."""
    end = 0
    for name in names:
        begin, end = end, end + sum(rank for owner, rank in columns if owner == name)
        slices[name] = slice(begin, end)
    stack: _Stack | None = None

    def forward(states: Tensor, *_: Any, **__: Any) -> Tensor:
        nonlocal stack
        if stack is None:
            stack = _Stack(plain, adapted, slices, compute)
        states = states.to(compute)
        mixed = selection.base.row_adapters is not None
        # a decoding step's single adapter reads its own columns
        chosen = "" if mixed else selection.single or NO_ADAPTER
        if not columns or chosen not in slices:
            return nn.functional.linear(states, stack.plain, stack.plain_bias)
        both = nn.functional.linear(states, stack.weight, stack.bias)
        result, low = both[..., :width], both[..., width:][..., slices[chosen]]
        if mixed:
            mask = selection.mask(columns, low)
            low = low * (mask[:, None] if low.dim() == 3 else mask)
        result.view(-1, width).addmm_(low.view(-1, low.shape[-1]), stack.ups[chosen])
        return result

    return forward


class _Stack:
    """Weights of layers with one input: W above A [outputs + ranks, inputs] with its bias, and B
    [ranks, outputs] for each of `slices`. Frozen weights in the compute type become views of W, so
    that they are in memory once."""

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(
        self,
        layers: Sequence[nn.Linear],
        adapted: Sequence[tuple[str, Any]],
        slices: Mapping[str, slice],
        compute: torch.dtype,
    ) -> None:
        sizes = [layer.out_features for layer in layers]
        width, ends = sum(sizes), dict(zip(layers, accumulate(sizes), strict=True))
        parts = [layer.weight.detach() for layer in layers]
        parts += [layer.lora_A[name].weight.detach() for name, layer in adapted]
        alone = len(parts) == 1
        self.weight = parts[0].to(compute) if alone else torch.cat([p.to(compute) for p in parts])
        self.plain, self.bias, self.plain_bias = self.weight[:width], None, None
        if any(layer.bias is not None for layer in layers):
            self.bias = self.weight.new_zeros(len(self.weight))
            self.plain_bias = self.bias[:width]
        up = self.weight.new_zeros(len(self.weight) - width, width)
        row = 0
        for name, layer in adapted:
            factor, end = layer.lora_B[name].weight, ends[layer.base_layer]
            row += factor.shape[1]
            scaled = (factor * layer.scaling[name]).T.to(compute)
            up[row - len(scaled) : row, end - len(factor) : end] = scaled
        self.ups = {name: up[rows] for name, rows in slices.items()}
        for layer, end in ends.items():
            part = self.weight[end - layer.out_features : end]
            if self.bias is not None and layer.bias is not None:
                self.bias[end - len(part) : end] = layer.bias
            if not alone and layer.weight.dtype == compute and not layer.weight.requires_grad:
                layer.weight.data = part  # a training pass reads it, too


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
