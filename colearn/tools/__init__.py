"""Tools that workflows and roles may use, beside a user's own async functions."""

from .calculator import calculate
from .code import run_code
from .mcp import mcp_tools

__all__ = ["calculate", "mcp_tools", "run_code"]
