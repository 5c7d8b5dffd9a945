"""Workflows: tasks whose roles call each other, written as a Python function."""

from .declared import DeclaredWorkflow
from .record import Call, CallResult, Payment, WorkflowState
from .role_turn import Answer
from .task import Workflow
from .team import Team
from .tool import Tool, ToolError

__all__ = [
    "Answer",
    "Call",
    "CallResult",
    "DeclaredWorkflow",
    "Payment",
    "Team",
    "Tool",
    "ToolError",
    "Workflow",
    "WorkflowState",
]
