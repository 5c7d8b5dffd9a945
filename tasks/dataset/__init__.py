"""A task made of a data set with prompts and reward functions."""

from .task import Dataset

__all__ = ["Dataset"]
