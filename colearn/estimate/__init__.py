"""What a run will need, before any weight is loaded."""

from .run import Estimate, Steps, estimate

__all__ = ["Estimate", "Steps", "estimate"]
