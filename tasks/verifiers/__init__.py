"""Environments of the package verifiers, whose roles are trained as agents."""

from .task import Verifiers

__all__ = ["Verifiers"]
