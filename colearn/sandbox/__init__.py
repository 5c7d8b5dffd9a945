"""Running programs that nobody has read: tests that they cannot fake, limits that they cannot pass."""

from .limits import Limits
from .mechanism import choose_mechanism
from .pool import SandboxPool
from .run import run_program, run_tests
from .start import Mechanism
from .verdict import ErrorKind, Output, Verdict

__all__ = [
    "ErrorKind",
    "Limits",
    "Mechanism",
    "Output",
    "SandboxPool",
    "Verdict",
    "choose_mechanism",
    "run_program",
    "run_tests",
]
