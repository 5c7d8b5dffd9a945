"""OpenSpiel's games as text tasks."""

from .games import Game
from .task import GameState, OpenSpiel

__all__ = ["Game", "GameState", "OpenSpiel"]
