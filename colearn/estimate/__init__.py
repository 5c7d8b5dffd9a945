"""Estimates the memory, tokens and time of a run before any weight is loaded."""

from .run_estimate import Estimate, IterationBounds, estimate

__all__ = ["Estimate", "IterationBounds", "estimate"]
