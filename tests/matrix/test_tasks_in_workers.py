"""Tasks step in worker processes (`run.step_workers`) with the same results.

That every task and its states survive a pickle and step alike in a copy is `check_task`'s; these
hold what a worker must make anew: nothing, programs in a sandbox, live environments.
"""

from __future__ import annotations

from typing import Any

import pytest
from random_play import random_play, task_of

from colearn.contract import DecPOMDP
from colearn.contract.testing.fingerprint import fingerprint
from colearn.training.step_workers import step_workers


def played(task: DecPOMDP[Any, Any], pool: Any, order: Any = "lockstep") -> list[Any]:
    return [fingerprint(tree) for tree in random_play(task, pool, order)]


@pytest.mark.parametrize("name", ["dpomdp", "code_loop", "environment", "pettingzoo"])
def test_a_task_has_the_same_results_in_worker_processes(name, tmp_path):
    task = task_of(name, tmp_path)
    try:
        here = played(task, None)
        with step_workers(2, task) as pool:
            assert pool is not None
            assert played(task, pool) == here
            assert played(task, pool, "free") == here
    finally:
        task.close()
