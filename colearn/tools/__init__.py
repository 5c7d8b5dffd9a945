"""Tools that workflows and roles may use, beside a user's own async functions."""

from .calculator import calculate
from .code import run_code

__all__ = ["calculate", "run_code"]
