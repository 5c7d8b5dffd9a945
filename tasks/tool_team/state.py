"""State of a tool-and-planner game: the world and the answers so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
World = TypeVar("World")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ToolRun(Generic[Answer]):
    """Output of the tool user's program and the answer it proposes."""

    code: str
    """The program; '' if the answer held no block of code."""
    output: str
    """Its output, or the reason of its failure."""
    ran: bool
    """It ended without an error."""
    answer: Answer | None
    """The proposal; None if the output is none."""


@dataclass(frozen=True, slots=True)
class PlannerDecision(Generic[Answer, World]):
    """One of the planner's answers and the world that it left."""

    answer: Answer | None
    """None if the answer had no valid format."""
    world: World


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState(Generic[Item, World, Answer]):
    """The world between two answers."""

    item: Item
    world: World
    turn: int
    """Whole turns played: both agents have answered in each."""
    tool: ToolRun[Answer] | None
    """The newest; None before the first."""
    tool_played: bool
    """The tool user has answered in this turn and the planner has not (sequential play)."""
    decisions: tuple[PlannerDecision[Answer, World], ...]
    """The planner's so far, one a turn."""
    answers: int
    """Answers so far, of both."""
    valid: int
    """Those of valid format."""
