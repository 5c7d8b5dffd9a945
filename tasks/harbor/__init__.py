"""Folders of Harbor tasks, which a team solves with shell commands in the sandbox."""

from .task import Harbor

__all__ = ["Harbor"]
