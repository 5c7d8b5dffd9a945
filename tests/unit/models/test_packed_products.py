"""Inference on packed weights: the numbers of torch's products, and never stale ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from colearn.models.packed_products import (
    PACKED_BYTES,
    PATIENCE,
    PackedProducts,
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
def test_copies_of_weights_stay_within_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.models.packed_products.PACKED_BYTES", 256 * 512 * 4 - 1)
    assert PACKED_BYTES == 2**28
    model, states = Pair(), torch.randn(4, 1, 256)
    plain = model(states)
    packed = PackedProducts(model)
    with packed.used():
        for _ in range(PATIENCE + 1):
            again = model(states)
    assert packed.bytes == 0
    torch.testing.assert_close(again, plain, atol=1e-6, rtol=1e-5)


def test_outside_of_its_context_a_layer_is_torchs_own_again() -> None:
    model, states = Pair(), torch.randn(4, 1, 256)
    with torch.inference_mode(), PackedProducts(model).used():
        model(states)
    model(states).sum().backward()
    assert model.wide.weight.grad is not None
