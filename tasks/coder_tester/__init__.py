"""Code: a coder writes programs and a tester writes tests until both agree (B.2, C.2)."""

from .task import CoderTester

__all__ = ["CoderTester"]
