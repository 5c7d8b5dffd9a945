"""A data set with prompts and a reward function as a task."""

from .task import Dataset

__all__ = ["Dataset"]
