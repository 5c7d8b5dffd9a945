"""Reports of comparisons: statistics, tables, curves, pictures and HTML pages."""

from .write import write_report

__all__ = ["write_report"]
