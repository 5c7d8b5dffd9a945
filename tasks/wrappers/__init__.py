"""Task wrappers: communication at test time, or one agent for the team (CoLLM, section 6.2).

Each wrapper takes a task and returns a task; the wrapped task is not changed.
"""

from .discussion import Discussion, DiscussionState
from .parallel import NoCommunication
from .pipeline import Pipeline, PipelineState
from .single import Single, SingleState
from .wrapper import Wrapper, Wraps

__all__ = [
    "Discussion",
    "DiscussionState",
    "NoCommunication",
    "Pipeline",
    "PipelineState",
    "Single",
    "SingleState",
    "Wrapper",
    "Wraps",
]

NAMES = {
    "discussion": "discussion:Discussion",
    "parallel": "parallel:NoCommunication",
    "pipeline": "pipeline:Pipeline",
    "single": "single:Single",
}
"""The shipped wrappers, by their names in a config's `wrapper`."""
