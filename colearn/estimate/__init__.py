"""Estimates of a run's memory and tokens, before any weight is loaded."""

from .run_estimate import Estimate, IterationBounds, estimate

__all__ = ["Estimate", "IterationBounds", "estimate"]
