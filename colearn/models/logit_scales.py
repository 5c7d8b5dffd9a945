"""What architectures do between the LM head and the logits, which their own forward passes hide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .base import Base

_FACTORS = ("logit_scale", "lm_head_multiplier", "output_multiplier")
"""Settings that multiply logits: Cohere's, Falcon H1's, Muse's."""
_CLOSE = {torch.float32: 1e-3}
"""Largest difference of logits by compute type, as a share of the largest logit."""
_CLOSE_ROUNDED = 0.05


def scaled_logits(config: Any, logits: Tensor) -> Tensor:
    """Logits [..., V] of the LM head with the scaling and the cap that a text model's config names,
    without the words that pad its head."""
    for name in _FACTORS:
        factor = getattr(config, name, None)
        if factor is not None:
            logits = logits * factor
    scaling = getattr(config, "logits_scaling", None)
    if scaling is not None:
        multiplies = str(config.model_type).startswith("hyperclovax")  # Granite's divides
        logits = logits * scaling if multiplies else logits / scaling
    cap = getattr(config, "final_logit_softcapping", None)
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    words = getattr(config, "unpadded_vocab_size", None)  # Inkling
    return logits if words is None else logits[..., :words]


@torch.no_grad()
def check_logits(base: Base) -> None:
    """Compare the logits of two tokens with those of the model's own forward pass.

    Errors: ValueError where they differ: the architecture does something else to its logits.
    """
    ids = torch.arange(2, device=base.device)[None] % base.config.vocab_size
    with base.autocast():
        own = base.causal(input_ids=ids, use_cache=False).logits.float()
    logits = base.logits(base.hidden(ids))
    close = _CLOSE.get(base.compute, _CLOSE_ROUNDED)
    if own.shape != logits.shape or (own - logits).abs().max() > close * own.abs().max():
        raise ValueError(
            f"its kind, {base.config.model_type}, computes logits in a way that is not known here"
        )
