"""Saved critics: value models that score episodes, and measures of how good their values are."""

from .loaded import LoadedCritic, load_critic

__all__ = ["LoadedCritic", "load_critic"]
