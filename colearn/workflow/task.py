"""A workflow as a task: a Dec-POMDP whose dynamics are a Python function."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from colearn.contract import DecPOMDP
from colearn.errors import TaskError
from colearn.pictures import Picture
from colearn.types import Outcome, Prompt

from . import drawn
from .record import WorkflowState
from .replay import advance
from .roles import RESERVED, Team
from .tool import Tool

Item = TypeVar("Item")


class Workflow(DecPOMDP[Item, WorkflowState[Item]]):
    """Roles that call each other, with tools, branches, loops and early exits.

    A subclass names its roles in `agents`, its tools in `tools`, its metrics in `measures`, gives
    `items`, and writes the program:

        async def run(self, team, item):
            query = await team.rewriter(f"Search for: {item.question}")
            found = await team.search(query)
            answer = await team.answerer(f"{found} Answer: {item.question}")
            team.reward(f1(answer, item.answer))

    `run` must be a function of the item and of what it is told: no clock, no randomness of its own.
    It is run again from the start at every turn, against the record of what was said (the state),
    so an episode forks and pickles like any other. All calls that wait at once (asyncio.gather) are
    one turn with several agents; a role that is called twice at once answers one call per turn.
    """

    horizon: int
    """The most turns. A run that has not ended there is cut off, with all that it would yet pay."""
    tools: tuple[Tool, ...] = ()
    """Each goes by its function's name."""
    measures: tuple[str, ...] = ()
    """The metrics' names; each is 0 until `team.measure` sets it."""
    pays = frozenset({"team", "local"})
    pays_later = True
    """`team.reward(value, to=answer)` may come turns after the answer. Set it to False where every
    answer is paid before the next role is asked."""

    @abstractmethod
    async def run(self, team: Team, item: Item) -> None:
        """The program."""

    def reset(self, item: Item, rng: np.random.Generator) -> WorkflowState[Item]:
        """What the run asks first.

        Errors: TaskError where it asks no role at all.
        """
        self._check_names()
        state = self._advance(WorkflowState(item=item), {})
        if state.finished:
            raise TaskError("workflow.run: ends before it asked a role; await one of the roles")
        return state

    def observe(self, state: WorkflowState[Item], agent: str) -> Prompt | None:
        """The prompt of the call that `agent` answers at this turn."""
        call = state.next_calls().get(agent)
        if call is None:
            return None
        return Prompt(call.text, fresh=call.fresh, made_from=state.sources(call))

    def step(
        self, state: WorkflowState[Item], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[WorkflowState[Item]]:
        """Go on with the roles' answers until other roles are asked or the run ends."""
        after = self._advance(state, actions)
        team = 0.0
        local: dict[str, float] = {}
        earned: dict[tuple[int, str], float] = {}
        for payment in after.payments[len(state.payments) :]:
            if payment.actions is None:
                team += payment.value
            for turn, role in payment.actions or ():
                if turn == state.turn:
                    local[role] = local.get(role, 0.0) + payment.value
                else:
                    earned[turn, role] = earned.get((turn, role), 0.0) + payment.value
        return Outcome(
            state=after, reward=team, done=after.finished, local_rewards=local, earned=earned
        )

    def metrics(self, state: WorkflowState[Item]) -> Mapping[str, float]:
        """What `team.measure` said."""
        return {name: state.measured.get(name, 0.0) for name in self.measures}

    def render(self, state: WorkflowState[Item]) -> str:
        """The executed graph as lines: number, turn, name, sources and result of each call."""
        return drawn.text(state)

    def picture(self, state: WorkflowState[Item]) -> Picture:
        """The executed graph as lanes, which the report draws after each turn."""
        return drawn.picture(state, (*self.agents, *self._named_tools()))

    def svg(self, state: WorkflowState[Item]) -> str:
        """The executed graph with its edges."""
        return drawn.svg(state)

    def _advance(
        self, state: WorkflowState[Item], answers: Mapping[str, str]
    ) -> WorkflowState[Item]:
        arguments = (self.run, self.agents, self._named_tools(), self.measures, state, answers)
        if asyncio.events._get_running_loop() is None:
            return advance(*arguments)
        with ThreadPoolExecutor(1) as thread:  # a loop within a loop needs a thread of its own
            return thread.submit(advance, *arguments).result()

    def _named_tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def _check_names(self) -> None:
        for name in (*self.agents, *self._named_tools()):
            if name in RESERVED or name.startswith("_") or not name.isidentifier():
                raise TaskError(
                    f"workflow: '{name}' cannot name a role or tool; use an identifier other than "
                    f"{', '.join(RESERVED)}"
                )
        both = set(self.agents) & set(self._named_tools())
        if both:
            raise TaskError(f"workflow: '{min(both)}' names a role and a tool; rename one")
        if not inspect.iscoroutinefunction(self.run):
            raise TaskError("workflow.run: must be a coroutine function; write `async def run`")
