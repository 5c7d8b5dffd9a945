"""Ways of playing a task with communication at test time, or by one agent (CoLLM, section 6.2).

Each takes a task and gives one; the task itself is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from colearn.contract import DecPOMDP

from .discussion import Discussion, DiscussionState
from .parallel import parallel
from .pipeline import Pipeline, PipelineState
from .single import Single, SingleState

WRAPPERS: Mapping[str, Callable[[DecPOMDP[Any, Any]], DecPOMDP[Any, Any]]] = {
    "discussion": Discussion,
    "parallel": parallel,
    "pipeline": Pipeline,
    "single": Single,
}
"""By the name that a config gives under `wrapper`."""

__all__ = [
    "WRAPPERS",
    "Discussion",
    "DiscussionState",
    "Pipeline",
    "PipelineState",
    "Single",
    "SingleState",
    "parallel",
]
