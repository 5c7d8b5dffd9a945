"""Rounding in float32 matrix multiplications on CUDA devices."""

from __future__ import annotations

import torch


def use_tf32(chosen: bool) -> bool:
    """Set whether float32 matrix multiplications on CUDA devices round their inputs to TF32.
    Returns the previous setting. No effect on other devices."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = chosen
    return before


def rounds_to_tf32(device: torch.device, compute: torch.dtype) -> bool:
    """Whether matrix multiplications in this type round their inputs to TF32 on this device."""
    rounds = device.type == "cuda" and compute == torch.float32
    return rounds and torch.backends.cuda.matmul.allow_tf32
