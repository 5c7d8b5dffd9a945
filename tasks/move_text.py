"""Prompts for tasks of grid moves, from Stronger-MAS, appendix D.

The paper prints the prompts of Plan-Path. Sokoban uses the same prompts with a different task text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .moves import Cell, Moves, cell_name, written
from .tool_team import TOOL, ToolRun

Step = tuple[Moves | None, str]
"""A decision of the planner (None if the answer had no valid format) and a text of the state after
the decision."""

_TOOL_FIRST = """\
You are an AI assistant designed to be helpful. Utilize your programming expertise to address the \
task. Propose Python code (within a single python code block) for the user to run. Ensure each \
response contains only ONE code block. Use the 'print' function to output the action list that \
{aim}. You may output the full action list if you can reach the target, or a partial list if \
uncertain.

Formatting requirements:
* Begin the Python block with ```python and end with ```.
* The program's output IS the action list (e.g., ["U","R","D","L"]).
* Print ONLY the action list (no extra text).

Task:
{task}"""

_TOOL_LATER = """\
Refine your Python solution to produce a correct, executable action list.

Task:
{task}

History (previous attempts, planner feedback, and trajectory):
{history}

Requirements:
* Output must be an action list that {aim} without violating constraints (stay in-bounds, avoid \
obstacles).
* If certain, print the full list; if uncertain, print a safe partial prefix.
* Single python code block only; program output IS the action list.
* Begin with ```python and end with ```; print ONLY the action list (e.g., ["U","R","D","L"])."""

_PLAN = """\
You are a planning and reasoning agent.{received}

Task:
{task}{tool}{history}

Instructions:
{instructions}

FORMATTING IS MANDATORY. Give the {final} action list AFTER the line that begins with ####.
Example:
#### ["U","R","D","L"]"""


_RECEIVED = """ You will receive:
* The original task description
* The Code Agent's (Tool Agent's) code
* The code execution output
Your job is to reason carefully, decide the final action list, and format your response EXACTLY as \
specified."""

_PLAN_FIRST = """\
* Read the task, inspect the code, and verify the execution output against the task requirements \
and environment constraints (bounds, obstacles, goal).
* If the code/output is correct and sufficient, adopt it.
* Otherwise, improve or override it with your own reasoning.
* Keep reasoning concise but explicit: justify why the final action is correct."""

_PLAN_LATER = """\
* Verify feasibility of the proposed action sequence step by step.
* If it collides, goes out of bounds, loops, or fails to reach the goal, correct it (you may \
shorten, extend, or replace the sequence).
* Prefer the simplest valid plan; if uncertain, provide the best safe prefix and explain briefly.
* Keep reasoning concise but explicit."""

_SINGLE_FIRST = """\
* Read the task, and verify your action list against the task requirements and environment \
constraints (bounds, obstacles, goal).
* Keep reasoning concise but explicit: justify why the final action is correct."""

_SINGLE_LATER = """\
* Verify feasibility of your action sequence step by step.
* Prefer the simplest valid plan; if uncertain, provide the best safe prefix and explain briefly.
* Keep reasoning concise but explicit."""


def tool_prompt(task: str, aim: str, steps: Sequence[Step], run: ToolRun[Any] | None) -> str:
    """The tool user's prompt; after the first turn it contains the tool user's last program and the
    planner's decision."""
    if run is None:
        return _TOOL_FIRST.format(aim=aim, task=task)
    tried = f"Your last code:\n{run.code}\nIts output:\n{run.output}\n{_history(steps)}"
    return _TOOL_LATER.format(aim=aim, task=task, history=tried)


def plan_prompt(task: str, steps: Sequence[Step], run: ToolRun[Any] | None, *, single: bool) -> str:
    """The planner's prompt: that of the first phase (generation) before the first decision, and of
    the second (refinement) after it. It contains the tool user's newest program; with `single`, it
    does not mention the tool user."""
    received = tool = ""
    if not single:
        received = "" if steps else _RECEIVED
        tool_run = ToolRun("(none yet)", "(none yet)", False, None) if run is None else run
        proposal = "none" if tool_run.answer is None else written(tool_run.answer)
        tool = (
            f"\n\nTool Agent's latest code and output:\n* Code:\n{tool_run.code}\n"
            f"* Execution output: {tool_run.output}\n* Proposed action: {proposal}"
        )
    instructions = (
        (_SINGLE_LATER if steps else _SINGLE_FIRST)
        if single
        else (_PLAN_LATER if steps else _PLAN_FIRST)
    )
    return _PLAN.format(
        received=received,
        task=task,
        tool=tool,
        history=f"\n\nTrajectory/history:\n{_history(steps)}" if steps else "",
        instructions=instructions,
        final="FINAL" if steps else "final",
    )


def compact_words(facts: Mapping[str, Iterable[Cell]]) -> list[str]:
    """A word for each cell that is not empty, such as `goal_c3`."""
    return [f"{name}_{cell_name(cell)}" for name, cells in facts.items() for cell in sorted(cells)]


def compact_prompt(words: Sequence[str], agent: str, run: ToolRun[Any] | None) -> str:
    """A prompt with the agent's name, the state's words and, for the planner, the tool user's
    proposal."""
    text = " ".join([agent, *words])
    if agent == TOOL or run is None:
        return text
    return f"{text} tool {'none' if run.answer is None else ' '.join(run.answer)}"


def _history(steps: Sequence[Step]) -> str:
    lines = []
    for number, (moves, state) in enumerate(steps, start=1):
        action = "no valid action list" if moves is None else written(moves)
        lines += [f"The {number}-th action is {action}.", f"The {number}-th state is {state}."]
    return "\n".join(lines) or "(nothing was decided yet)"
