"""Saved critics (value models that score episodes) and measures of how well their values predict
returns."""

from .loaded import LoadedCritic, load_critic

__all__ = ["LoadedCritic", "load_critic"]
