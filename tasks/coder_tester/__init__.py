"""Code: a coder writes a program, a tester writes a test, until they agree (B.2, C.2)."""

from .task import CoderTester

__all__ = ["CoderTester"]
