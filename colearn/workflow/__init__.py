"""Workflows: tasks whose roles call each other, written as a Python function."""

from .declared import DeclaredWorkflow
from .record import Call, Event, Payment, WorkflowState
from .roles import Answer, Team
from .task import Workflow
from .tool import Tool, ToolError

__all__ = [
    "Answer",
    "Call",
    "DeclaredWorkflow",
    "Event",
    "Payment",
    "Team",
    "Tool",
    "ToolError",
    "Workflow",
    "WorkflowState",
]
