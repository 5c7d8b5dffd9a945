"""HouseBuild: a house built from its blueprint while spiders attack."""

from .task import HouseBuild

__all__ = ["HouseBuild"]
