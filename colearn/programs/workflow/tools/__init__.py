"""Built-in tools for workflows and roles."""

from .code import run_code
from .mcp import mcp_tools

__all__ = ["mcp_tools", "run_code"]
