"""Inference layers for accelerators, where kernel launches dominate the cost of a token.

Linear layers keep their weights in the compute type instead of casting them in every pass. Layers
with one input, such as queries, keys and values, are one matrix multiplication, with the first
factors of all adapters; the second factors are another one, even in a mixed batch of agents. A
mixed batch needs a mask by row only if its rows are not in equal groups. A norm runs as one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
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
    """Adapter name of each row; None: all rows use one adapter or none."""
    _groups: tuple[str | None, ...] = ()
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
        single = chosen if chosen is None or isinstance(chosen, str) else chosen[0]
        self._groups = (single,) if rows is None else equal_groups(rows)

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The adapters by `equal_groups` of the rows."""
        if self.base.row_adapters is not self._given:  # some rows of the batch, for the LM head
            self.read()
        return self._groups

    @property
    def masks(self) -> RowMasks | None:
        """The masks in use; None if all rows use one adapter or none."""
        return None if self.rows is None else RowMasks(self._masks)

    def mask(self, columns: Columns, like: Tensor) -> Tensor:
        """Mask [rows, columns] (columns: the ranks of all adapters, side by side): 1 if the column
        belongs to the row's adapter, else 0."""
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


def equal_groups(rows: Sequence[str | None]) -> tuple[str | None, ...]:
    """The adapter of each group, if the rows of each adapter are adjacent and as many as those of
    each other adapter; else (). A team's turn begins with equal groups. Groups are unequal after
    the first answer that ends before the others, and if agents share an adapter or draw different
    numbers of answers."""
    groups = tuple(dict.fromkeys(rows))
    each = len(rows) // len(groups)
    return groups if [name for name in groups for _ in range(each)] == list(rows) else ()


def _mask(columns: Columns, rows: Sequence[str], like: Tensor) -> Tensor:
    numbers = {name: number for number, (name, _) in enumerate(columns)}
    owners = [numbers[name] for name, rank in columns for _ in range(rank)]
    of_rows = [numbers.get(row, -1) for row in rows]
    # one copy to the device for both
    joined = torch.tensor([*of_rows, *owners], device=like.device)
    return (joined[: len(of_rows), None] == joined[None, len(of_rows) :]).to(like.dtype)


def _product(layers: Sequence[Any], compute: torch.dtype, selection: _Selection) -> Forward:
    """The outputs of layers with one input, side by side: y = x W + x A B, where W, A and B stack
    the layers and all of their adapters, and rows use the columns of A and rows of B of their
    adapter. W and A are one matrix multiplication. B is another one for each of `equal_groups`, all
    of them in one kernel. Without such groups, it is x W + (x A · m) B, where m is 1 in the columns
    of each row's adapter: with few adapters, computing unused columns costs less than gathering
    factors by row."""
    names = sorted({name for layer in layers for name in getattr(layer, "lora_A", ())})
    adapted = [
        (name, layer) for name in names for layer in layers if name in getattr(layer, "lora_A", ())
    ]
    columns: Columns = tuple((name, int(layer.r[name])) for name, layer in adapted)
    plain = [getattr(layer, "base_layer", layer) for layer in layers]
    width = sum(layer.out_features for layer in plain)
    stack: _Stack | None = None

    @cache
    @torch.inference_mode(False)
    def factors(groups: tuple[str | None, ...]) -> tuple[slice, Tensor] | None:
        """Columns of A, and B [groups, ranks, outputs]; None without `_columns_of` the groups."""
        own = _columns_of([name for name, rank in columns for _ in range(rank)], groups)
        assert stack is not None
        return None if own is None else (own, stack.up[0, own].view(len(groups), -1, width))

    def forward(states: Tensor, *_: Any, **__: Any) -> Tensor:
        nonlocal stack
        if stack is None:
            stack = _Stack(plain, adapted, compute)
        states = states.to(compute)
        own = factors(selection.groups)
        if own is None and (not columns or selection.rows is None):
            return nn.functional.linear(states, stack.plain, stack.plain_bias)
        both = nn.functional.linear(states, stack.weight, stack.bias)
        result, low = both[..., :width], both[..., width:]
        if own is None:
            mask = selection.mask(columns, low)
            low = low * (mask[:, None] if low.dim() == 3 else mask)
        chosen, up = own or (slice(None), stack.up)
        groups, rank = up.shape[:2]
        # of the products of each group's rows with each group's columns, those with its own
        low = low[..., chosen].view(groups, -1, groups, rank).diagonal(0, 0, 2)
        result.view(groups, -1, width).baddbmm_(low.permute(2, 0, 1), up)
        return result

    return forward


def _columns_of(owners: Sequence[str], groups: tuple[str | None, ...]) -> slice | None:
    """The columns of the adapters `groups`, if these are side by side and equally many each; else
    None. `owners`: the adapter of each column."""
    places = [place for place, owner in enumerate(owners) if owner in groups]
    if not places:
        return None
    found = slice(places[0], places[-1] + 1)
    each = len(places) // len(groups)
    return found if owners[found] == [name for name in groups for _ in range(each)] else None


class _Stack:
    """Weights of layers with one input: W above A [outputs + ranks, inputs] with its bias, and B
    [1, ranks, outputs]. Frozen weights in the compute type become views of W, so that they are in
    memory once."""

    @torch.inference_mode(False)
    @torch.no_grad()
    def __init__(
        self,
        layers: Sequence[nn.Linear],
        adapted: Sequence[tuple[str, Any]],
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
        self.up = self.weight.new_zeros(1, len(self.weight) - width, width)
        row = 0
        for name, layer in adapted:
            factor, end = layer.lora_B[name].weight, ends[layer.base_layer]
            row += factor.shape[1]
            scaled = (factor * layer.scaling[name]).T.to(compute)
            self.up[0, row - len(scaled) : row, end - len(factor) : end] = scaled
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
