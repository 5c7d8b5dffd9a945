"""Rounding of float32 products on CUDA devices."""

from __future__ import annotations

import torch


def use_tf32(chosen: bool) -> bool:
    """Let float32 products of CUDA devices round their inputs to TF32, or not. Returns what was
    set before. Other devices do not read it."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = chosen
    return before


def rounds_to_tf32(device: torch.device, compute: torch.dtype) -> bool:
    """Whether products in this type round their inputs on this device."""
    rounds = device.type == "cuda" and compute == torch.float32
    return rounds and torch.backends.cuda.matmul.allow_tf32
