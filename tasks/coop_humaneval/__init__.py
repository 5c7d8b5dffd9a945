"""CoopHumanEval: an auxiliary and a main function, written at once and tested together."""

from .task import CoopHumanEval

__all__ = ["CoopHumanEval"]
