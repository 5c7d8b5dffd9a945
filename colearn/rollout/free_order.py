"""Free order: every branch advances independently, so that a slow step, tool or player delays no
other branch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from colearn.contract import ActionRequest, TokenAnswer

from .counts import Counts
from .executors import Beside, CallingThread, run_in
from .grow_tree import advance, first_error
from .growth import Growth
from .quick_calls import QuickCalls

AT_ONCE = 256
"""Maximum number of threads. The number can be large, because nearly all threads wait for slow
calls."""


def grow_freely(
    growths: Sequence[Growth],
    *,
    counts: Counts,
    greedy: bool = False,
    pool: Executor | None = None,
) -> None:
    """Grow every tree from its root to its end. All branches advance independently.

    Requests join the batch that their engine is decoding, so batches depend on timing. Samples do
    not depend on timing, except for rounding within a batch.

    Errors: TaskError if the task violates its contract; ConfigError from a generator.
    """
    caller = CallingThread()
    for growth in growths:
        growth.prepare()

    async def act(request: ActionRequest) -> list[TokenAnswer]:
        answers = await request.player.act(replace(request, greedy=True) if greedy else request)
        counts.answered(answers)
        seconds = max((answer.seconds for answer in answers), default=0.0)
        counts.response_seconds.append(seconds)
        return answers

    async def grow_all(beside: Beside, step: Beside) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for growth in growths:
                    group.create_task(advance(growth, act, beside=beside, step=step))
        except BaseExceptionGroup as failures:
            raise first_error(failures) from None

    with (
        ThreadPoolExecutor(AT_ONCE, thread_name_prefix="task") as threads,
        ThreadPoolExecutor(AT_ONCE, thread_name_prefix="step") as steps,
    ):
        calls = QuickCalls(caller)
        step: Beside = partial(calls, steps)
        if pool is not None:
            step = partial(run_in, pool)
        caller.run(grow_all(partial(calls, threads), step))
    counts.joint_actions += sum(len(growth.nodes) - 1 for growth in growths)  # without roots
