"""HouseBuild: agents build a house from its blueprint while spiders attack."""

from .task import HouseBuild

__all__ = ["HouseBuild"]
