"""Classical Dec-POMDPs as text tasks."""

from .task import PlayState, TextDecPOMDP

__all__ = ["PlayState", "TextDecPOMDP"]
