"""Checks that colearn and the model's own forward pass compute the same logits for a loaded
model."""

from __future__ import annotations

import torch
from torch import Tensor

from colearn.contract.rows import Piece

from .base import Base
from .torch_settings import rounds_to_tf32
from .tree_mask import TreeMask

_CLOSE, _CLOSE_ROUNDED = 1e-3, 0.05
"""Maximum allowed difference between logits, as a fraction of the largest logit: in float32, and if
matrix multiplications round their inputs. Gemma 3 270M in bfloat16 has 0.008."""
_SHARED, _BRANCH = 4, 12
"""Numbers of tokens of the checked tree: of the common prefix, and of each of its two branches."""


@torch.no_grad()
def check_logits(base: Base) -> None:
    """Compare the logits of the second branch of a packed tree with the logits of the model's own
    forward pass over this branch alone.

    The two passes differ for an architecture that ignores position ids, or whose attention depends
    on a key's place in the row. The logits of most tokens must agree: in half precision, rounding
    may send a single token to other experts.

    Errors: ValueError if logits are not finite, because the weights are then damaged; ValueError if
    the logits differ; ConfigError as `Base.hidden`.
    """
    ids = torch.arange(_SHARED + 2 * _BRANCH, device=base.device) % base.config.vocab_size
    branch = torch.cat([ids[:_SHARED], ids[-_BRANCH:]])
    with base.autocast():
        expected = base.causal(input_ids=branch[None], use_cache=False).logits[0].float()
    if not expected.isfinite().all():
        raise ValueError(
            "its logits are not finite: its weights are damaged, or too large for its compute type"
        )
    expected, logits = expected[-_BRANCH:], base.logits(_tree_states(base, ids)[-_BRANCH:])
    rounds = base.compute != torch.float32 or rounds_to_tf32(base.device, base.compute)
    close = _CLOSE_ROUNDED if rounds else _CLOSE
    if (
        expected.shape != logits.shape
        or _usual_gap(expected, logits) > close * expected.abs().max()
    ):
        raise ValueError(
            f"its kind, {base.config.model_type}, computes logits, positions or attention in a way "
            "that is not known here"
        )


def _usual_gap(own: Tensor, other: Tensor) -> Tensor:
    """Median over tokens of the largest difference between a token's logits."""
    return (own - other).abs().amax(-1).median()


def _tree_states(base: Base, ids: Tensor) -> Tensor:
    """Hidden states [tokens, D] of the tree, packed in one row."""
    end, last = _SHARED + _BRANCH, len(ids)
    pieces = (
        Piece(0, _SHARED, -1, 0, 0),
        Piece(_SHARED, end, 0, _SHARED, 0),
        Piece(end, last, 0, _SHARED, 0),
    )
    positions = torch.arange(last, device=ids.device)
    positions[end:] -= _BRANCH
    mask = TreeMask(pieces=(pieces,), width=last)
    return base.hidden(ids[None], position_ids=positions[None], mask=mask)[0]
