"""What architectures do between the LM head and the logits, which their own forward passes hide."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_FACTORS = ("logit_scale", "lm_head_multiplier", "output_multiplier")
"""Settings that multiply logits: Cohere's, Falcon H1's, Muse's."""


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
