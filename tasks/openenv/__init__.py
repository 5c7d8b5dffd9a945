"""Environments behind OpenEnv servers as text tasks."""

from .task import OpenEnv

__all__ = ["OpenEnv"]
