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
    """The program's output, or the reason for its failure."""
    ran: bool
    """Whether the program ended without an error."""
    answer: Answer | None
    """The proposal; None if the output is not a valid answer."""


@dataclass(frozen=True, slots=True)
class PlannerDecision(Generic[Answer, World]):
    """One of the planner's answers and the world after it."""

    answer: Answer | None
    """The parsed answer; None if it had no valid format."""
    world: World


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState(Generic[Item, World, Answer]):
    """State of the game between two answers."""

    item: Item
    world: World
    turn: int
    """Complete turns played, in which both agents have answered."""
    tool: ToolRun[Answer] | None
    """The newest program run; None before the first."""
    tool_played: bool
    """In sequential play, whether the tool user has answered in this turn and the planner has
    not."""
    decisions: tuple[PlannerDecision[Answer, World], ...]
    """The planner's decisions so far, one per turn."""
    answers: int
    """Number of answers so far by both agents."""
    valid: int
    """Number of answers in a valid format."""
