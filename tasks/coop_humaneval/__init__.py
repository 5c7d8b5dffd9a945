"""CoopHumanEval: two agents write an auxiliary and a main function, which are tested together."""

from .task import CoopHumanEval

__all__ = ["CoopHumanEval"]
