"""Checks that colearn and the model's own forward pass compute the same logits for a loaded
model."""

from __future__ import annotations

import torch

from .base import Base

_CLOSE = {torch.float32: 1e-3}
"""Maximum allowed difference between logits, as a fraction of the largest logit, keyed by compute
type."""
_CLOSE_ROUNDED = 0.05


@torch.no_grad()
def check_logits(base: Base) -> None:
    """Compare `Base.logits` at two tokens with the logits of the model's own forward pass.

    Errors: ValueError if logits are not finite, because the weights are then damaged; ValueError if
    the logits differ, because the architecture then transforms logits in a way that colearn does
    not support.
    """
    ids = torch.arange(2, device=base.device)[None] % base.config.vocab_size
    with base.autocast():
        own = base.causal(input_ids=ids, use_cache=False).logits.float()
    if not own.isfinite().all():
        raise ValueError(
            "its logits are not finite: its weights are damaged, or too large for its compute type"
        )
    logits = base.logits(base.hidden(ids))
    close = _CLOSE.get(base.compute, _CLOSE_ROUNDED)
    if own.shape != logits.shape or (own - logits).abs().max() > close * own.abs().max():
        raise ValueError(
            f"its kind, {base.config.model_type}, computes logits in a way that is not known here"
        )
