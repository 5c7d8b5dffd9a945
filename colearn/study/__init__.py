"""What the agents of a comparison are to each other: policies swapped, agents trained alone put
together, each role's reward over training."""

from .page import write_study

__all__ = ["write_study"]
