"""Driver of growing trees: requests actions, executes joint actions, counts both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from colearn.contract import ActionRequest, Services, TokenAnswer

from .advance import Beside, advance, first_error
from .barrier import Barrier
from .calling_thread import CallingThread
from .counts import Counts
from .growth import Growth
from .turn_steps import TurnSteps

Order = Literal["lockstep", "free"]

AT_ONCE = 256
"""Maximum number of threads. Nearly all of them wait for slow calls."""


class Driver:
    """Advances all branches of several trees, which share the engines of their players.

    In the free order a slow step, tool or player delays no other branch. Requests join the batch
    that their engine is decoding, so batches depend on timing; samples do not, except for rounding
    within a batch. In lockstep, a barrier holds the requests of each branch until all other
    branches have reached the same turn. The requests of a turn form one batch per engine, which is
    repeatable bit for bit.
    """

    def __init__(
        self, order: Order = "lockstep", *, greedy: bool = False, pool: Executor | None = None
    ) -> None:
        self.order, self.greedy, self.pool = order, greedy, pool
        self.counts = Counts()

    def grow(self, growths: Sequence[Growth]) -> None:
        """Grow every tree to its end.

        Errors: TaskError if the task breaks its contract, ConfigError from a generator.
        """
        caller = CallingThread()
        with (
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="task") as threads,
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="step") as steps,
        ):
            free = self.order == "free"
            step: Beside = partial(_run, steps)
            if self.pool is not None:
                step = partial(_run, self.pool)
            elif not free:
                at_once = all(Services.of(one.task).steps_at_once for one in growths)
                step = TurnSteps(caller, steps, at_once=at_once)
            caller.run(
                self._all(
                    growths,
                    None if free else Barrier(len(growths)),
                    beside=partial(_run, threads if free else caller),
                    step=step,
                )
            )
        self.counts.joint_actions += sum(len(growth.nodes) - 1 for growth in growths)

    async def _all(
        self,
        growths: Sequence[Growth],
        barrier: Barrier | None,
        **where: Any,
    ) -> None:
        by_turn: dict[int, list[float]] = {}

        async def act(request: ActionRequest) -> list[TokenAnswer]:
            turn = None if barrier is None else barrier.turn
            answers = await request.player.act(replace(request, greedy=self.greedy))
            self.counts.answered(answers)
            seconds = max((one.seconds for one in answers), default=0.0)
            if turn is None:
                self.counts.response_seconds.append(seconds)
            else:
                by_turn.setdefault(turn, []).append(seconds)
            return answers

        try:
            async with asyncio.TaskGroup() as group:
                for number, growth in enumerate(growths):
                    wait = None if barrier is None else barrier.of_tree(number)
                    group.create_task(advance(growth, act, barrier=wait, **where))
        except BaseExceptionGroup as failures:
            raise first_error(failures) from None
        self.counts.response_seconds += [max(seconds) for seconds in by_turn.values()]


async def _run(pool: Executor, work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
