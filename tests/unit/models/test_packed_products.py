"""Inference on packed weights: the numbers of torch's products, and never stale ones."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from colearn.models.packed_products import (
    PATIENCE,
    SMALLEST,
    PackedProducts,
    packed_bytes,
    worthwhile,
)

pytestmark = pytest.mark.skipif(
    not worthwhile(torch.device("cpu"), torch.float32), reason="no oneDNN on this machine"
)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wide = nn.Linear(256, 512)
        self.small = nn.Linear(512, 8, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.small(self.wide(states))
        return result


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_packed_layers_compute_what_plain_layers_compute(rows: int) -> None:
    model, states = Pair(), torch.randn(rows, 1, 256)
    plain = model(states)
    packed = PackedProducts(model)
    with packed.used():
        for _ in range(PATIENCE + 1):
            torch.testing.assert_close(model(states), plain, atol=1e-6, rtol=1e-5)


@torch.inference_mode()
def test_only_layers_above_the_smallest_size_are_packed_and_only_after_several_calls() -> None:
    model, states = Pair(), torch.randn(4, 1, 256)
    packed = PackedProducts(model)
    with packed.used():
        for _ in range(PATIENCE - 1):
            model(states)
        assert packed.bytes == 0
        model(states)
    assert packed.bytes == 256 * 512 * 4


@torch.inference_mode()
def test_the_last_reference_frees_the_copies_without_a_garbage_collection() -> None:
    model, states = Pair(), torch.randn(4, 1, 256)
    packed = PackedProducts(model)
    with packed.used():
        for _ in range(PATIENCE + 1):
            model(states)
    reference = weakref.ref(packed)
    gc.disable()
    try:
        del packed
        assert reference() is None
    finally:
        gc.enable()


WIDE = 256 * 512 * 4
"""Bytes of the packed copy of one wide layer."""


@torch.inference_mode()
@pytest.mark.parametrize("room", [2 * WIDE, 2 * WIDE - 1])
def test_all_layers_of_a_model_share_the_memory_of_its_copies(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies fit exactly; with a byte less the second layer keeps its plain weights."""
    monkeypatch.setattr("colearn.models.packed_products.PACKED_BYTES", room)
    model = nn.Sequential(nn.Linear(256, 512), nn.Linear(512, 256))
    packed = PackedProducts(model)
    with packed.used():
        for _ in range(PATIENCE):
            model(torch.zeros(1, 256))
    expected = WIDE * (room // WIDE)
    assert (packed.bytes, packed_bytes(model)) == (expected, expected)


class Doubled(nn.Linear):
    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(states)


def negated() -> nn.Linear:
    """A layer whose forward was replaced, as adapters and hooks do."""
    layer = nn.Linear(256, 512)
    plain = layer.forward
    layer.forward = lambda states: -plain(states)  # type: ignore[method-assign]
    return layer


@torch.inference_mode()
@pytest.mark.parametrize(
    "layer",
    [nn.Linear(256, 512, dtype=torch.float64), Doubled(256, 512), negated()],
    ids=["double precision", "a subclass", "a replaced forward"],
)
def test_a_layer_that_is_no_plain_one_computes_as_before(layer: nn.Linear) -> None:
    states = torch.randn(4, 256, dtype=layer.weight.dtype)
    plain = layer(states)
    with PackedProducts(nn.Sequential(layer)).used():
        assert layer(states).equal(plain)
    assert layer(states).equal(plain)
    assert packed_bytes(nn.Sequential(layer)) == 0


@pytest.mark.parametrize(("rows", "packed"), [(256, True), (255, False)])
def test_the_smallest_packed_layer_has_exactly_so_many_weights(rows: int, packed: bool) -> None:
    assert SMALLEST == 256 * 256
    assert bool(packed_bytes(nn.Sequential(nn.Linear(256, rows)))) == packed


def test_models_that_compute_in_half_precision_or_elsewhere_are_not_packed() -> None:
    assert not worthwhile(torch.device("cpu"), torch.bfloat16)
    assert not worthwhile(torch.device("meta"), torch.float32)
