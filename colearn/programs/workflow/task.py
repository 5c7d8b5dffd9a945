"""Workflow tasks: Dec-POMDPs whose dynamics are a Python function."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from colearn.errors import TaskError
from colearn.text.json_value import copied
from colearn.text.reasoning import without_reasoning

from .record import CallResult, WorkflowState
from .recorded import RecordedTask
from .replay import Replay
from .team import Team, role_problem
from .tool import Tool, run_tools

Item = TypeVar("Item")


class Workflow(RecordedTask[Item, WorkflowState[Item]]):
    """Roles that call each other, with tools, branches, loops and early exits.

    A subclass sets `agents` (its roles), `tools` and `measures`, and defines `items` and the
    program:

        async def run(self, team, item):
            query = await team.rewriter(f"Search for: {item.question}")
            passages = await team.search(query)
            answer = await team.answerer(f"{passages} Answer: {item.question}")
            team.reward(f1(answer, item.answer))

    `run` must be a function of the item and the answers. It must not read a clock or draw random
    numbers. At every turn, `run` is replayed from the start against the record (the state), so an
    episode forks and pickles like an episode of any other task. Concurrent calls (asyncio.gather)
    form one turn with several agents; a role with two concurrent calls answers one call per turn.
    """

    horizon: int
    """Maximum number of turns. A longer run is truncated and loses its later rewards."""
    tools: tuple[Tool, ...] = ()
    """Tools, named by their functions."""
    pays_later = True
    """True if `team.reward(value, to=answer)` may be called turns after the answer. Set it to False
    if every answer is paid before the next role is asked."""

    @abstractmethod
    async def run(self, team: Team, item: Item) -> None:
        """Executes the program."""

    def reset(self, item: Item, rng: np.random.Generator) -> WorkflowState[Item]:
        """Starts a run, up to its first calls.

        Errors: TaskError if the run calls no role.
        """
        self._check_names()
        state = self._advance(WorkflowState(item=item), {})
        if state.finished:
            raise TaskError("workflow.run: ends before it asked a role; await one of the roles")
        return state

    def _advance(
        self, state: WorkflowState[Item], answers: Mapping[str, str]
    ) -> WorkflowState[Item]:
        if asyncio.events._get_running_loop() is None:
            return self._replayed(state, answers)
        with ThreadPoolExecutor(1) as thread:  # a nested event loop needs another thread
            return thread.submit(self._replayed, state, answers).result()

    def _replayed(
        self, before: WorkflowState[Item], answers: Mapping[str, str]
    ) -> WorkflowState[Item]:
        """Replays the record, delivers the answers in the order of the calls, and runs tools.

        Returns the state in which only calls of roles are unanswered, or the run has ended.
        Errors: TaskError if the run's calls differ from the record, or the run waits for something
        other than a role or tool.
        """
        tools = self._named_tools()
        replay = Replay(tools)
        team = Team(replay, self.agents, tools, self.measures)
        try:
            replay.start(self.run(team, copied(before.item)))
            for event in before.events:
                replay.tell(event)
            due = before.next_calls()
            for call in sorted((due[role] for role in answers), key=lambda call: call.number):
                text = without_reasoning(answers[call.name])
                replay.tell(CallResult(call=call, result=text, turn=before.turn))
            while replay.open_tools():
                for event in run_tools(replay.open_tools(), tools):
                    replay.tell(event)
            finished = replay.main.done()
            waiting = () if finished else replay.open_roles()
            if not finished and not waiting:
                raise TaskError(
                    "workflow.run: waits for something other than a role or a tool; await only "
                    "these"
                )
            return WorkflowState(
                item=before.item,
                turn=before.turn + (1 if answers else 0),
                events=tuple(replay.events),
                waiting=waiting,
                finished=finished,
                payments=tuple(replay.payments),
                measured=dict(replay.measured),
            )
        finally:
            replay.loop.close()

    def metrics(self, state: WorkflowState[Item]) -> Mapping[str, float | None]:
        """The values of `team.measure`. What the run has not set is 0 if it has ended, and not
        measured if it was cut."""
        known: Mapping[str, float | None] = super().metrics(state)
        return known if state.finished else {name: state.measured.get(name) for name in known}

    @property
    def tool_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the tools, for renderings."""
        return tuple(self._named_tools())

    def _named_tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def _check_names(self) -> None:
        for name in (*self.agents, *self._named_tools()):
            if problem := role_problem(name):
                raise TaskError(f"workflow: {problem}")
        shared_names = set(self.agents) & set(self._named_tools())
        if shared_names:
            raise TaskError(f"workflow: '{min(shared_names)}' names a role and a tool; rename one")
        if not inspect.iscoroutinefunction(self.run):
            raise TaskError("workflow.run: must be a coroutine function; write `async def run`")
