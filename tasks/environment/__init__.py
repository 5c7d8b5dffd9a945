"""Environments with TRL's `environment_factory` interface as tasks."""

from .task import Environment

__all__ = ["Environment"]
