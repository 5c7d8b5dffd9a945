"""Players that are programs, for example a scripted bot, a game-tree search or an equilibrium
policy; and programs that can play any task."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from colearn.contract import ActionRequest, Acts, Player, TokenAnswer, View
from colearn.contract.checked_task import CheckedTask, calling
from colearn.contract.seeding import derive_rng
from colearn.contract.task_results import validate_answer
from colearn.contract.types import Action
from colearn.errors import ConfigError


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="program")


@dataclass(frozen=True, slots=True)
class Program(Player):
    """A player that runs a program in a separate thread, one call at a time. A program's actions
    have no tokens and are never trained.

    Errors of `act`: TaskError that names the seat and the program's class if the program raises an
    exception or returns anything but a text.
    """

    program: Acts
    _thread: ThreadPoolExecutor = field(init=False, default_factory=_one_thread, compare=False)

    @property
    def draws_candidates(self) -> bool:
        return False

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answers, request)

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown()

    def _answers(self, request: ActionRequest) -> list[TokenAnswer]:
        """Compute all actions of a request. The next request waits until these actions are
        computed."""
        return [self._answer(request, seed) for seed in request.seeds]

    def _answer(self, request: ActionRequest, seed: int) -> TokenAnswer:
        view = View(
            task=request.task,
            state=request.state,
            seat=request.seat,
            text=request.observation.whole,
            rng=derive_rng(seed, "program"),
        )
        who = f"program of agent '{request.seat}': {type(self.program).__name__}.act"
        with calling(who):
            text = self.program.act(view)
        return TokenAnswer(Action(validate_answer(text, who)))


@dataclass(frozen=True, kw_only=True)
class Says:
    """Answers every observation with the same text."""

    text: str = ""
    """The answer."""

    def act(self, view: View) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class Legal:
    """Chooses a random legal action; the task must define `legal_action`."""

    def act(self, view: View) -> str:
        action = CheckedTask(view.task).legal_action(view.state, view.seat, view.rng)
        if action is None:
            raise ConfigError(
                "program: 'legal' needs a task with legal_action; name another program"
            )
        return action


NAMES = {
    "adopts": "colearn.tasks.tool_team.programs:Adopts",
    "equilibrium": "colearn.tasks.open_spiel.programs:Equilibrium",
    "legal": "colearn.rollout.agents.programs:Legal",
    "mcts": "colearn.tasks.open_spiel.programs:MCTS",
    "says": "colearn.rollout.agents.programs:Says",
}
"""Programs shipped with colearn, by name. Other packages add programs through the entry-point group
`colearn.programs`."""
