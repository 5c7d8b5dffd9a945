"""Figures, tables, curves, pictures and pages of a comparison's finished runs."""

from .write import write_report

__all__ = ["write_report"]
