"""The task `verifiers`: an episode is one run of an environment of the package verifiers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from colearn.contract.held_out import hold_out
from colearn.errors import ConfigError
from colearn.programs.gateway.checks import check_numbers
from colearn.programs.gateway.failures import last_words
from colearn.programs.gateway.requests import SAMPLING
from colearn.programs.gateway.task import Gateway

from ..checks import check_choice, check_whole

WORKER = Path(__file__).with_name("worker.py")
_PATIENCE = 600.0
"""Maximum number of seconds in which an environment loads its data."""


class Verifiers(Gateway):
    """The roles of an environment of verifiers (0.4 and later), each as an agent. Needs verifiers
    in the Python that plays, and the extra `serve`.

    env: id of an installed environment, or name of a module in the folder of the config.
    settings: further settings of the environment, as in the section `env` of verifiers' configs:
    `taskset` (its data), a role (`max_turns`, `harness`, `runtime`), or `id` of an environment that
    is played over the data.
    python: the Python in which verifiers and the environment are installed; none: the Python of
    colearn.
    rows: number of the first tasks of the environment that are used. A fifth of them, drawn with a
    fixed seed, is held out.
    rewards: `team` pays all agents the sum of the roles' rewards; `own` pays each agent the rewards
    of its role.
    workers: number of processes that play; each plays many episodes at the same time.
    horizon: maximum number of turns.
    timeout: maximum number of seconds from an answer to the next request or to the reward, and of
    a worker's start, in which the environment loads its data.
    failure_reward: reward of an episode that the environment does not count as complete; none:
    such an episode is truncated.
    max_bytes: maximum number of UTF-8 bytes of a context, including the agent's answers.
    words: for each agent, texts on which the embedded model is warm-started.

    A role is an agent unless the environment or `settings` name a model for it. The environment's
    sampling settings have no effect: an agent samples with its own `sampling`. A role whose harness
    is verifiers' `null`, or which names none, plays in the process of the worker, with the tools of
    the task; a role that names no runtime plays in a local folder.

    Errors: ConfigError from the constructor if the environment cannot be loaded.
    """

    def __init__(
        self,
        env: str,
        *,
        settings: dict[str, Any] | None = None,
        python: str | None = None,
        rows: int = 1000,
        rewards: str = "team",
        workers: int = 1,
        horizon: int = 16,
        timeout: float = 600.0,
        failure_reward: float | None = None,
        max_bytes: int = 16384,
        words: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        check_whole("rows", rows, 1)
        check_whole("workers", workers, 1)
        check_choice("rewards", rewards, ("own", "team"))
        unpaid = 0.0 if failure_reward is None else failure_reward
        check_numbers(horizon=horizon, timeout=timeout, failure_reward=unpaid, max_bytes=max_bytes)
        spec = {"env": env, "settings": dict(settings or {}), "rows": rows, "rewards": rewards}
        self.env, self._command = env, (python or sys.executable, str(WORKER), json.dumps(spec))
        agents, self._keys = _described(self._command)
        super().__init__(
            agents,
            env,
            command=self._command,
            workers=workers,
            horizon=horizon,
            timeout=timeout,
            failure_reward=failure_reward,
            ignore=SAMPLING,
            max_bytes=max_bytes,
            words=words,
        )

    @property
    def program_field(self) -> str:
        return "task.env"

    def items(self, split: str) -> Sequence[int]:
        """Places of the tasks in the environment's data."""
        if not self._items:
            places, keys = range(len(self._keys)), self._keys
            source = f"task.env: {self.env}"
            size = max(1, len(keys) // 5)
            self._items = dict(hold_out(places, keys.__getitem__, size=size, source=source))
        return self._items[split]


@cache
def _described(command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roles of an environment, and a key of each task. Errors: ConfigError with the remedy."""
    python, _, spec = command
    env = json.loads(spec)["env"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"task.env: '{env}' does not load within {_PATIENCE:g} seconds; lower task.rows"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"task.python: cannot run '{python}' ({error.strerror}); give the path of a Python"
        ) from None
    if done.returncode != 0:
        reason = last_words(done.stderr)
        if "No module named 'verifiers" in reason:
            raise ConfigError(
                f"task.python: {python} has no verifiers 0.4; `{python} -m pip install "
                "'verifiers>=0.4'`, or give the path of another Python"
            )
        raise ConfigError(f"task.env: '{env}' cannot be loaded: {reason}")
    found = json.loads(done.stdout.decode().splitlines()[-1])
    if not found["agents"]:
        raise ConfigError(
            f"task.env: every role of '{env}' names a model, so none can be trained; remove a "
            "role's `model` from task.settings"
        )
    if not found["keys"]:
        raise ConfigError(f"task.env: '{env}' has no tasks; change task.settings.taskset")
    return tuple(found["agents"]), tuple(found["keys"])
