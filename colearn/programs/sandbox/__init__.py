"""Sandboxed execution of untrusted programs, as scripts or against trusted tests."""

from .confine import Mechanism
from .limits import Limits
from .mechanism import check_mechanism
from .run import run_program, run_tests
from .verdict import ErrorKind, Output, Verdict

__all__ = [
    "ErrorKind",
    "Limits",
    "Mechanism",
    "Output",
    "Verdict",
    "check_mechanism",
    "run_program",
    "run_tests",
]
