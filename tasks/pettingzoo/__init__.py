"""PettingZoo's environments as text tasks."""

from .phrasing import Phrasing, Plain
from .task import PettingZoo, ZooState

__all__ = ["PettingZoo", "Phrasing", "Plain", "ZooState"]
