"""Estimates of a run's memory and tokens, before any weight is loaded."""

from .run import Estimate, Steps, estimate

__all__ = ["Estimate", "Steps", "estimate"]
