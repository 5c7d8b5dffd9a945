"""Harbor tasks, which agents solve by taking turns with shell commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from colearn.contract import DecPOMDP, Headline
from colearn.contract.held_out import hold_out
from colearn.contract.types import Outcome
from colearn.errors import ConfigError
from colearn.programs.sandbox import check_mechanism
from colearn.text.reasoning import without_reasoning

from ..checks import check_finite, check_number, check_split, check_whole
from .folder import HarborTask, read_tasks
from .shell import Graded, run_command, verify

DONE = "done"
_FENCED = re.compile(r"```[^\n]*\n(.*?)```", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command, who gave it and what it wrote."""

    agent: str
    command: str
    text: str

    def __str__(self) -> str:
        return f"{self.agent}: {self.command}\n{self.text}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborState:
    """The commands so far and the files after them."""

    task: HarborTask
    files: str = field(repr=False)
    commands: tuple[Command, ...] = ()
    graded: Graded | None = None


class Harbor(DecPOMDP[HarborTask, HarborState]):
    """Agents solve Harbor tasks: they take turns, and each turn is one shell command in the
    sandbox, on the files that the earlier commands left.

    An agent reads the task's instruction, the commands since its last turn and what they wrote. Its
    answer is the first fenced block, or the whole text. The answer `done` ends the episode, as does
    the horizon. Then `tests/test.sh` runs on the files in a fresh sandbox, and the number in
    `/logs/verifier/reward.txt` or `reward.json` is the team's reward. Without such a number, for
    example after a time limit, the reward is 0 and `unverified` is 1: Harbor counts such a trial as
    0 in its mean.

    path: a folder with a folder for each task, or one task's folder.
    agents: names of the agents, in the order of their turns.
    horizon: maximum number of commands per episode.
    test_share: share of the tasks that is held out for the split `test`. A single task is in both
        splits.
    seconds: time limit of a command; the verifier's is `verifier.timeout_sec` of the task. Further
        limits are 16 processes, 16 MB of files, and an address space of 2048 MB, or more if
        `environment.memory_mb` is higher, of which each process gets a sixteenth.
    words: commands on which the embedded model is warm-started.

    Errors: ConfigError from the constructor; TaskError naming a task that needs a container, a
    network or several steps.
    """

    headline = Headline("reward")
    steps_at_once = True

    def __init__(
        self,
        path: str,
        *,
        agents: tuple[str, ...] = ("first", "second"),
        horizon: int = 8,
        test_share: float = 0.1,
        seconds: float = 20.0,
        words: tuple[str, ...] = (),
    ) -> None:
        check_whole("horizon", horizon, 1)
        check_number("test_share", test_share, 0.0, 1.0)
        check_finite("seconds", seconds, above=0.0)
        if not agents or len(set(agents)) < len(agents):
            raise ConfigError(f"task.agents: must be different names, got {list(agents)}")
        self.path, self.agents, self.horizon = Path(path), tuple(agents), horizon
        self.test_share, self.words = test_share, tuple(words)
        self.seconds = seconds
        check_mechanism("bwrap")

    @cached_property
    def _items(self) -> Mapping[str, Sequence[HarborTask]]:
        tasks = read_tasks(self.path)
        if len(tasks) == 1:
            return {"train": tasks, "test": tasks}
        size = min(max(1, round(len(tasks) * self.test_share)), len(tasks) - 1)
        return hold_out(tasks, lambda task: task.name, size=size, source=f"task.path: {self.path}")

    def items(self, split: str) -> Sequence[HarborTask]:
        """The tasks of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: HarborTask, rng: np.random.Generator) -> HarborState:
        """The files of the task's environment."""
        return HarborState(task=item, files=item.files)

    def observe(self, state: HarborState, agent: str) -> str | None:
        """The instruction and the commands since the agent's last turn; None if another agent's
        turn it is."""
        turn = len(state.commands)
        if agent != self._turn(state):
            return None
        news = "\n".join(map(str, state.commands[max(turn - len(self.agents), 0) :]))
        if turn >= len(self.agents):
            return news
        return (
            f"{state.task.instruction}\n\nThe working folder is {state.task.folder}. Answer with "
            f"one shell command, or with `{DONE}`.\n{news}"
        )

    def step(
        self, state: HarborState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[HarborState]:
        """Runs the command; after the last one, the verifier."""
        agent = self._turn(state)
        command = read_command(actions[agent])
        text, files = "", state.files
        if command != DONE:
            text, files = run_command(state.task, files, command, self.seconds)
        commands = (*state.commands, Command(agent=agent, command=command, text=text))
        after = replace(state, files=files, commands=commands)
        if command != DONE and len(commands) < self.horizon:
            return Outcome(state=after, reward=0.0, done=False)
        graded = verify(state.task, files)
        after = replace(after, graded=graded)
        return Outcome(state=after, reward=graded.reward or 0.0, done=True)

    def metrics(self, state: HarborState) -> Mapping[str, float]:
        """`reward`, `unverified` and `commands`."""
        graded = state.graded or Graded(None)
        return {
            "reward": graded.reward or 0.0,
            "unverified": float(state.graded is not None and graded.reward is None),
            "commands": float(sum(one.command != DONE for one in state.commands)),
        }

    def render(self, state: HarborState) -> str | None:
        """The reason why the verifier gave no reward."""
        return state.graded.reason or None if state.graded else None

    def legal_action(self, state: HarborState, agent: str, rng: np.random.Generator) -> str | None:
        """Returns one of `words`; None if `words` is empty."""
        return self.words[int(rng.integers(len(self.words)))] if self.words else None

    def _turn(self, state: HarborState) -> str:
        return self.agents[len(state.commands) % len(self.agents)]


def read_command(answer: str) -> str:
    """The first fenced block of an answer, or the whole answer."""
    text = without_reasoning(answer)
    fenced = _FENCED.search(text)
    return (fenced[1] if fenced else text).strip()
