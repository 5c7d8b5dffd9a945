"""Kept critics: value models that score episodes, and what they are worth."""

from .loaded import LoadedCritic, load_critic

__all__ = ["LoadedCritic", "load_critic"]
