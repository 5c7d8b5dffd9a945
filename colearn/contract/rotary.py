"""Rotary position embeddings whose frequencies depend on the longest row of a forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_BY_LENGTH = ("dynamic", "longrope")
"""RoPE types whose frequencies transformers recomputes once a pass reaches positions beyond the
trained range. In a pass beyond the trained range, cached keys have other frequencies than new
queries, and a row's result depends on the other rows of the batch."""


def by_length(config: Any) -> bool:
    """Whether the rotary frequencies depend on a pass's longest position, so that the host must
    wait for the device to read that position."""
    return any(kind.get("rope_type") in _BY_LENGTH for kind in _kinds(config))


def steady_positions(config: Any) -> int | None:
    """Number of positions up to which a token's rotary embedding depends only on its position; None
    if the config names no maximum."""
    longest: int | None = getattr(config, "max_position_embeddings", None)
    for kind in _kinds(config):
        if kind.get("rope_type") in _BY_LENGTH:
            trained = kind.get("original_max_position_embeddings") or longest
            if longest is not None and trained is not None:
                longest = min(longest, trained)
    return longest


def _kinds(config: Any) -> Iterable[Mapping[str, Any]]:
    """The settings of rotary embeddings, which can differ by kind of layer."""
    rope = getattr(config, "rope_parameters", None) or {}
    return rope.values() if all(isinstance(kind, dict) for kind in rope.values()) else [rope]
