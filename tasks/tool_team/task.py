"""Base class of the tool-and-planner games: turns, program runs, rewards, metrics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal

import numpy as np

from colearn.contract import DecPOMDP, Headline, joint_observations
from colearn.contract.types import Observation, Outcome, Sources
from colearn.errors import ConfigError
from colearn.programs.sandbox import Limits, run_program
from colearn.text.reasoning import without_reasoning

from ..answers import code_block, final_answer
from ..checks import check_choice, check_number, check_split, check_whole
from .state import Answer, Item, PlannerDecision, TeamState, ToolRun, World

TOOL, PLAN = "tool", "plan"
_SHOWN = 2000
"""Maximum number of characters of a program's output that are kept."""


@dataclass(kw_only=True, eq=False)
class ToolTeam(DecPOMDP[Item, TeamState[Item, World, Answer]], Generic[Item, World, Answer]):
    """Base class of games in which one agent proposes an answer and another agent decides.

    The agent `tool` writes a program whose output proposes an answer. The agent `plan` sees the
    task, the program and its output, and decides. Only the decisions of `plan` change the world.

    A game implements the abstract methods below, which define how answers are read, how they change
    the world and what they earn. The sandbox runs the only fenced Python block of `tool`'s answer.
    An answer with no block or with several blocks does not have a valid format. The answer of
    `plan` is the text after the last `####` at the start of a line.
    """

    pays = frozenset({"team", "local"})
    headline = Headline("solved")
    variant: Literal["team", "single"] = "team"
    """'single': `plan` plays alone, without a tool user, as in the single-agent rows of the paper's
    tables."""
    order: Literal["sequential", "parallel"] = "sequential"
    """'sequential': one agent acts at each step, and `plan` sees `tool`'s answer of the same turn.
    'parallel': both answer at the same time, and `plan` sees `tool`'s answer of the previous
    turn."""
    turns: int = 4
    """T, the maximum number of turns. In sequential play, a turn of the team consists of two steps
    of the task."""
    rewards: Literal["shaped", "outcome"] = "shaped"
    """'outcome': the team's reward is 1 if the task is solved; a local reward is 1 for a valid
    format (B.6)."""
    prompt: Literal["full", "compact"] = "full"
    """'compact': prompts of a few words, for small word-level models. With these prompts, an answer
    is only the list, and the answer of `tool` is read as the output of a program."""
    train: int = 256
    test: int = 100
    """Number of instances in each split."""
    fresh: bool = False
    """Whether to draw each training instance when it is needed, so that `train` can be as large as
    the number of a run's episodes. The paper draws new environments for every update. False: draw
    all `train` instances at the start."""
    seed: int = 0
    """Seed of the instances. The splits are disjoint for every seed."""
    seconds: float = 10.0
    """Time limit in seconds for a program of `tool`."""

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, ("team", "single"))
        check_choice("order", self.order, ("sequential", "parallel"))
        check_choice("rewards", self.rewards, ("shaped", "outcome"))
        check_choice("prompt", self.prompt, ("full", "compact"))
        check_whole("turns", self.turns, 1)
        check_whole("train", self.train, 1)
        check_whole("test", self.test, 1)
        check_whole("seed", self.seed, 0)
        if not isinstance(self.fresh, bool):
            raise ConfigError(f"task.fresh: must be true or false, got {self.fresh!r}")
        check_number("seconds", self.seconds, 0.1, 600.0)
        self.agents = (TOOL, PLAN) if self.variant == "team" else (PLAN,)
        steps = len(self.agents) if self.order == "sequential" else 1
        self.horizon = self.turns * steps
        self.pays = frozenset({"team", "local"})
        self.reward_range = (-1.0, 1.0)

    def items(self, split: str) -> Sequence[Item]:
        """The instances of 'train' or 'test'."""
        splits = self.splits()
        check_split(split)
        return splits[split]

    def reset(self, item: Item, rng: np.random.Generator) -> TeamState[Item, World, Answer]:
        """The state before any answer; nothing is random."""
        return TeamState(
            item=item,
            world=self.start(item),
            turn=0,
            tool=None,
            tool_played=False,
            decisions=(),
            answers=0,
            valid=0,
        )

    def observe(self, state: TeamState[Item, World, Answer], agent: str) -> Observation | None:
        """A new prompt with the full task and all attempts so far; None for an agent that does not
        act at this step."""
        if self._in_sequence and (agent == TOOL) == state.tool_played:
            return None
        made_from = self._sources(state, agent)
        return Observation(self.shown(state, agent), fresh=True, made_from=made_from)

    def step(
        self,
        state: TeamState[Item, World, Answer],
        actions: Mapping[str, str],
        rng: np.random.Generator,
    ) -> Outcome[TeamState[Item, World, Answer]]:
        """Run the tool user's program, execute the plan, or both; nothing is random.

        In sequential play, a step of `tool` pays the team the reward that the proposal would earn
        if it were executed. The following step of `plan` pays the rest of the turn's r_team. Each
        step is thus credited with its own effect, and a turn pays r_team in total.
        Errors: ConfigError if no sandbox works here.
        """
        local: dict[str, float] = {}
        tool, played, decisions = state.tool, state.tool_played, state.decisions
        valid, world, reward = state.valid, state.world, 0.0
        if TOOL in actions:
            tool, played = self._run(state, actions[TOOL]), self.order == "sequential"
            valid += tool.answer is not None
            reward = self._promised(state, tool)
            local[TOOL] = self._local(tool.answer, self.tool_reward(state.item, state.world, tool))
        if PLAN in actions:
            answer = self._decided(state, actions[PLAN])
            valid += answer is not None
            if answer is not None:
                world = self.carried_out(state.item, state.world, answer)
            local[PLAN] = self._local(
                answer, self.plan_reward(state.item, state.world, answer, world)
            )
            decisions, played = (*decisions, PlannerDecision(answer, world)), False
            reward = self._team(state, world) - self._promised(state, state.tool)
        after = TeamState(
            item=state.item,
            world=world,
            turn=len(decisions),
            tool=tool,
            tool_played=played,
            decisions=decisions,
            answers=state.answers + len(actions),
            valid=valid,
        )
        done = self.solved(state.item, world)
        return Outcome(state=after, reward=reward, done=done, local_rewards=local)

    def metrics(self, state: TeamState[Item, World, Answer]) -> Mapping[str, float]:
        """Returns `solved` (0 or 1), `progress` (towards a solution, in [0, 1]), `rounds` (complete
        turns of the team) and `valid` (the share of answers in a valid format)."""
        return {
            "solved": float(self.solved(state.item, state.world)),
            "progress": self.progress(state.item, state.world),
            "rounds": float(state.turn),
            "valid": state.valid / state.answers if state.answers else 0.0,
        }

    def global_info(self, state: TeamState[Item, World, Answer]) -> str:
        """m_t: the turn, from 1, and the progress so far."""
        turn = min(state.turn + 1, self.turns)
        percent = 100 * self.progress(state.item, state.world)
        return f"turn {turn} of {self.turns} progress {percent:.0f}"

    def reference_actions(self, state: TeamState[Item, World, Answer]) -> dict[str, str]:
        """Answers of all acting agents that solve the task immediately."""
        answer = self.solution(state.item, state.world)
        acting = joint_observations(self, state)
        return {agent: self.said(state.item, agent, answer) for agent in acting}

    def legal_action(
        self, state: TeamState[Item, World, Answer], agent: str, rng: np.random.Generator
    ) -> str:
        """A random legal answer, independent of the task and of the other agent, on which embedded
        models are warm-started."""
        answer = self.random_answer(state.item, state.world, rng)
        return self.said(state.item, agent, answer)

    def said(self, item: Item, agent: str, answer: Answer) -> str:
        """Formats an answer as the prompt of the agent requests."""
        written = self.written(item, answer)
        if self.prompt == "compact":
            return written
        return f"#### {written}" if agent == PLAN else f"```python\nprint({written!r})\n```"

    @property
    def _in_sequence(self) -> bool:
        return self.order == "sequential" and len(self.agents) > 1

    def _sources(self, state: TeamState[Item, World, Answer], agent: str) -> Sources:
        """Returns the actions that determine the world and a prompt: all decisions and the newest
        program."""
        steps, last = (2, 1) if self._in_sequence else (1, 0)
        decided = [(steps * turn + last, PLAN) for turn in range(state.turn)]
        if state.tool is None:
            return tuple(decided)
        ran = state.turn if state.tool_played else state.turn - 1
        return (*decided, (steps * ran, TOOL))

    def _run(self, state: TeamState[Item, World, Answer], text: str) -> ToolRun[Answer]:
        if self.prompt == "compact":
            answer = without_reasoning(text)
            return ToolRun("", answer[:_SHOWN], True, self.read(state.item, answer))
        code = code_block(text)
        if code is None:
            return ToolRun("", "no single block that begins with ```python", False, None)
        result = run_program(code, limits=Limits(seconds=self.seconds))
        if result.error is not None:
            return ToolRun(code, f"{result.error}: {result.message}", False, None)
        return ToolRun(code, result.text[:_SHOWN].strip(), True, self.read(state.item, result.text))

    def _decided(self, state: TeamState[Item, World, Answer], text: str) -> Answer | None:
        answer = text if self.prompt == "compact" else final_answer(text)
        return None if answer is None else self.read(state.item, answer)

    def _team(self, state: TeamState[Item, World, Answer], after: World) -> float:
        """r_team of a turn that ends in the world `after`."""
        if self.rewards == "outcome":
            return float(self.solved(state.item, after))
        return self.team_reward(state.item, state.world, after)

    def _promised(
        self, state: TeamState[Item, World, Answer], run: ToolRun[Answer] | None
    ) -> float:
        """The r_team that this turn's proposal would earn; 0 in parallel play, where `plan` does
        not see the proposal yet."""
        if not self._in_sequence or run is None or run.answer is None:
            return 0.0
        return self._team(state, self.carried_out(state.item, state.world, run.answer))

    def _local(self, answer: Answer | None, shaped: float) -> float:
        return float(answer is not None) if self.rewards == "outcome" else shaped

    # What a game says ----------------------------------------------------------------------------

    @abstractmethod
    def splits(self) -> Mapping[str, Sequence[Item]]:
        """The instances by split, the same at every call."""

    @abstractmethod
    def start(self, item: Item) -> World:
        """The world of turn 0."""

    @abstractmethod
    def solved(self, item: Item, world: World) -> bool:
        """Whether the task is solved."""

    @abstractmethod
    def progress(self, item: Item, world: World) -> float:
        """Progress in [0, 1]; 1 if solved."""

    @abstractmethod
    def read(self, item: Item, text: str) -> Answer | None:
        """Parses a final answer or a program's output; None if its format is not valid."""

    @abstractmethod
    def written(self, item: Item, answer: Answer) -> str:
        """Formats an answer such that `read` parses it."""

    @abstractmethod
    def carried_out(self, item: Item, world: World, answer: Answer) -> World:
        """The world after a decision."""

    @abstractmethod
    def team_reward(self, item: Item, before: World, after: World) -> float:
        """r_team of a turn, in [0, 1]."""

    @abstractmethod
    def tool_reward(self, item: Item, world: World, run: ToolRun[Answer]) -> float:
        """r_loc of `tool`, in [0, 1]: its proposal is simulated without changing the world."""

    @abstractmethod
    def plan_reward(self, item: Item, before: World, answer: Answer | None, after: World) -> float:
        """r_loc of `plan`, in [0, 1]."""

    @abstractmethod
    def shown(self, state: TeamState[Item, World, Answer], agent: str) -> str:
        """The prompt for an acting agent."""

    @abstractmethod
    def solution(self, item: Item, world: World) -> Answer:
        """The decision that solves the world.

        Errors: ValueError if there is none.
        """

    @abstractmethod
    def random_answer(self, item: Item, world: World, rng: np.random.Generator) -> Answer:
        """A legal answer of random length."""
