"""Base task of recorded programs: prompts, rewards, metrics and renderings of the record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.picture import Picture
from colearn.contract.types import Observation, Outcome

from . import drawn
from .record import Call, WorkflowState

Item = TypeVar("Item")
State = TypeVar("State", bound=WorkflowState[Any])


class RecordedTask(DecPOMDP[Item, State]):
    """A program that calls roles, as a Dec-POMDP; `_advance` executes the program."""

    measures: tuple[str, ...] = ()
    """Names of the metrics; each that the program does not set is 0."""
    tool_names: Sequence[str] = ()
    pays = frozenset({"team", "local"})

    def _truncated(self, state: State) -> bool:
        """Whether the episode stops at this state, but the program has not ended: the horizon cut
        it off."""
        return not state.finished and state.turn >= self.horizon

    @abstractmethod
    def _advance(self, state: State, answers: Mapping[str, str]) -> State:
        """Returns the state after these answers."""

    def _prompt(self, state: State, call: Call) -> Observation:
        return Observation(
            call.text, fresh=call.fresh, made_from=state.sources(call), system=call.system
        )

    def observe(self, state: State, agent: str) -> Observation | None:
        """Returns the prompt of the call that `agent` answers at this turn."""
        call = state.next_calls().get(agent)
        return None if call is None else self._prompt(state, call)

    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """Passes the roles' answers to the program and runs it until its next calls or its end."""
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
            state=after,
            reward=team,
            done=after.finished,
            truncated=self._truncated(after),
            local_rewards=local,
            earned=earned,
        )

    def metrics(self, state: State) -> Mapping[str, float | None]:
        """Returns the values of `team.measure`."""
        return {name: state.measured.get(name, 0.0) for name in self.measures}

    def render(self, state: State) -> str:
        """Returns the executed graph as text: a line for each answered call."""
        return drawn.text(state)

    def picture(self, state: State) -> Picture:
        """Returns the executed graph as lanes, which the report draws after each turn."""
        return drawn.picture(state, (*self.agents, *self.tool_names))
