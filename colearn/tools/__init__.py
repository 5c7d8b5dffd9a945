"""Built-in tools for workflows and roles, beside a user's own async functions."""

from .calculator import calculate
from .code import run_code
from .mcp import mcp_tools

__all__ = ["calculate", "mcp_tools", "run_code"]
