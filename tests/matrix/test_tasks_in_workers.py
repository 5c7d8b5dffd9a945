"""Every shipped task steps in worker processes (`run.step_workers`) with the same results."""

from __future__ import annotations

from typing import Any

import pytest
from complete_tasks import COMPLETE_TASKS, NEED_SETTINGS
from random_play import random_play, task_of

from colearn.contract import DecPOMDP
from colearn.contract.testing.fingerprint import fingerprint
from colearn.training.step_workers import step_workers


def played(task: DecPOMDP[Any, Any], pool: Any, order: Any = "lockstep") -> list[Any]:
    return [fingerprint(tree) for tree in random_play(task, pool, order)]


# programs of the gateway and of verifiers, and an OpenEnv server's sessions: see the tests of each
NAMES = [*COMPLETE_TASKS, *sorted(NEED_SETTINGS - {"gateway", "openenv", "verifiers"})]


@pytest.mark.parametrize("name", NAMES)
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
