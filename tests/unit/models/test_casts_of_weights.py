"""Weights in float32 that compute in bfloat16: their casts live as long as their layer runs."""

from __future__ import annotations

import torch
from tiny import tiny_model

from colearn.estimate.ledger import Ledger
from colearn.models.base import Base


def test_a_pass_keeps_no_copy_of_all_weights() -> None:
    base = Base(tiny_model(), torch.bfloat16)
    layers = base.causal.get_decoder().layers
    casts = 2 * sum(p.numel() for layer in layers for p in layer.parameters() if p.dim() > 1)
    with torch.no_grad(), Ledger() as ledger:
        base.hidden(torch.zeros((1, 1), dtype=torch.long))
    # the largest of 14 matrices in bfloat16, and one token's activations
    assert ledger.peak < casts / 4
