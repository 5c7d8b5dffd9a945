"""Text tasks made of environments behind OpenEnv servers."""

from .task import OpenEnv

__all__ = ["OpenEnv"]
