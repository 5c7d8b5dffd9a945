"""Algorithms x seeds on one task: run them, compare them, report them."""

from .api import compare
from .report import write_report

__all__ = ["compare", "write_report"]
