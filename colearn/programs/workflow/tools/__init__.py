"""Built-in tools for workflows and roles."""

from .calculator import calculate
from .code import run_code
from .mcp import mcp_tools

__all__ = ["calculate", "mcp_tools", "run_code"]
