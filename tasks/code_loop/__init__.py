"""A team that plans, writes, verifies and revises programs."""

from .task import ReflectiveVerification

__all__ = ["ReflectiveVerification"]
