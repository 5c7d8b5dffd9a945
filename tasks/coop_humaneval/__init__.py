"""CoopHumanEval: two agents write an auxiliary and a main function at once; both are tested
together."""

from .task import CoopHumanEval

__all__ = ["CoopHumanEval"]
