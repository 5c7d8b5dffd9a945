"""Harvest: a team fills orders while the weather, which one agent reads about, moves the pay."""

from .task import Harvest

__all__ = ["Harvest"]
