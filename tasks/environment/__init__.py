"""Tasks made of environments with TRL's `environment_factory` interface."""

from .task import Environment

__all__ = ["Environment"]
