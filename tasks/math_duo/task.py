"""Math: reasoners and tool users answer until they agree (Stronger-MAS, B.1 and C.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colearn.contract import (
    DecPOMDP,
    Headline,
    joint_observations,
)
from colearn.contract.types import Observation, Outcome
from colearn.errors import ConfigError
from colearn.programs.sandbox import Limits, run_program
from colearn.text.reasoning import without_reasoning

from ..answers import code_block, marked_answer
from ..checks import check_choice, check_number, check_split, check_unset, check_whole
from . import reward
from .checker import equal, number, plain_number
from .data import MathProblem, load_problems
from .text import compact_prompt, full_prompt

JUDGE = "judge"
_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """One agent's parsed answer."""

    text: str
    """The text of a reasoner's answer, or a tool user's program."""
    answer: str
    """The text after `####` or in a box, or the program's output or error message; '' if there is
    none."""
    value: float | None
    """The value of the answer."""
    matched: bool
    """Whether the answer has the requested format."""
    ran: bool = True
    """For a tool user, whether the program ended without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MathState:
    """The latest answers and the reward so far."""

    item: MathProblem
    turn: int
    """Complete turns played."""
    seat: int
    """In sequential play, the number of agents that have answered in this turn."""
    said: tuple[tuple[str, ParsedAnswer], ...]
    """Answers of the previous turn and of this turn, by agent."""
    answers: int = 0
    matched: int = 0


class MathDuo(DecPOMDP[MathProblem, MathState]):
    """`reasoner` and `tool` answer until their numbers agree, for at most T turns (B.1).

    The team's total reward is 1 if the final answer is right by NumEq (1e-6). The final answer is
    the judge's. Without a judge, it is the first reasoner's answer, and without reasoners, the
    first tool user's. Every step pays a change of the current final answer: 1 if it becomes right,
    and -1 if it becomes wrong. The sum of these payments is the paper's r_team, which B.1
    broadcasts to all turns. Among the candidates of one turn, r_team and its change differ by a
    constant, which cancels in group advantages. Local rewards at every turn:

        reasoner, judge  0.2 format + 0.8 right
        tool             0.1 format + 0.1 runs + 0.8 right

    A reasoner answers after `####` or in a `\\boxed{}`. A tool user answers with one block of
    Python, which the sandbox runs and which prints the answer. math-verify (extra `math`) reads
    answers that are not plain numbers.

    `reasoners` (N) and `tools` (M) set the size of an ensemble of N + M agents. With `judge`, a
    further agent reads their answers at the end of each turn and decides (Fig. 5). With
    `order='parallel'`, all agents except the judge answer at the same time, as in the paper. With
    `order='sequential'`, each agent sees the earlier answers of the turn. `tools=0, turns=1`
    selects a single agent; with more turns, the single agent refines its own answer.

    `data`: 'generated' arithmetic, 'polaris' or 'gsm8k' from the hub (extra `tasks`), or a
    .jsonl/.csv file of `problem` and `answer`. `test_data` is the test split; by default it is the
    official test split of `data`, or a tenth of the data if there is none. 'aime24',
    'aime25', 'amc23', 'math500', 'olympiad' and 'gsm8k_test' can only be test splits.

    `prompt='compact'` selects prompts such as `reasoner 7 + 2 * 3`. All agents then answer with
    numbers, and a tool user's number is read as the output of a program.

    The paper leaves the following choices open: a tool user's weights (as in the paper's games),
    the agent whose answer is final, the judge's prompt, the judge's reward (the same as a
    reasoner's), and the condition under which an ensemble agrees (all agents gave the same number).

    Errors: ConfigError from the constructor, one line that names the setting.
    """

    pays = frozenset({"team", "local"})
    headline = Headline("solved")
    reward_range = (-1.0, 1.0)

    def __init__(
        self,
        *,
        data: str = "generated",
        test_data: str | None = None,
        reasoners: int = 1,
        tools: int = 1,
        judge: bool = False,
        order: Literal["parallel", "sequential"] = "parallel",
        turns: int = 4,
        rewards: Literal["shaped", "outcome"] = "shaped",
        prompt: Literal["full", "compact"] = "full",
        train: int | None = None,
        test: int | None = None,
        seed: int | None = None,
        seconds: float = 10.0,
    ) -> None:
        check_choice("order", order, ("parallel", "sequential"))
        check_choice("rewards", rewards, ("shaped", "outcome"))
        check_choice("prompt", prompt, ("full", "compact"))
        for field, value, least in (("reasoners", reasoners, 0), ("tools", tools, 0)):
            check_whole(field, value, least, 16)
        if data != "generated":
            unused = {"train": train, "test": test, "seed": seed}
            check_unset(unused, "unless task.data is 'generated'")
        train, test = 256 if train is None else train, 100 if test is None else test
        seed = 0 if seed is None else seed
        for field, value in (("turns", turns), ("train", train), ("test", test)):
            check_whole(field, value, 1)
        check_whole("seed", seed, 0)
        check_number("seconds", seconds, 0.1, 600.0)
        if not reasoners + tools:
            raise ConfigError("task.reasoners: nobody answers; set reasoners or tools to 1 or more")
        workers = (*_named("reasoner", reasoners), *_named("tool", tools))
        self.workers, self.agents = workers, (*workers, *((JUDGE,) if judge else ()))
        self.order, self.turns, self.rewards, self.prompt = order, turns, rewards, prompt
        self.limits = Limits(seconds=seconds)
        waves = [[worker] for worker in workers] if order == "sequential" else [list(workers)]
        self._waves = [*waves, *([[JUDGE]] if judge else [])]
        self.horizon = turns * len(self._waves)
        self._items = load_problems(data, test_data, train, test, seed)

    def items(self, split: str) -> Sequence[MathProblem]:
        """The problems of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: MathProblem, rng: np.random.Generator) -> MathState:
        """The state before any answer; nothing is random."""
        return MathState(item=item, turn=0, seat=0, said=())

    def observe(self, state: MathState, agent: str) -> Observation | None:
        """The problem with the newest answers; None for an agent that does not act at this step."""
        if agent not in self._waves[state.seat]:
            return None
        steps = len(self._waves)
        step = state.turn * steps + state.seat
        made_from = []
        for speaker, _ in state.said:
            wave = next(k for k, wave in enumerate(self._waves) if speaker in wave)
            spoke = state.turn * steps + wave
            made_from.append((spoke if spoke < step else spoke - steps, speaker))
        return Observation(self._shown(state, agent), fresh=True, made_from=tuple(made_from))

    def step(
        self, state: MathState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[MathState]:
        """Run the programs and read the answers; nothing is random.

        Errors: ConfigError if no sandbox works here; MissingExtra if math-verify is needed.
        """
        new = {agent: self._read(agent, text) for agent, text in actions.items()}
        latest = {**dict(state.said), **new}
        ends = state.seat + 1 == len(self._waves)
        turn = state.turn + ends
        after = MathState(
            item=state.item,
            turn=turn,
            seat=0 if ends else state.seat + 1,
            said=tuple((agent, latest[agent]) for agent in self.agents if agent in latest),
            answers=state.answers + len(new),
            matched=state.matched + sum(answer.matched for answer in new.values()),
        )
        done = bool(ends) and (turn == self.turns or self._agreed(latest))
        before = reward.team(self._final(dict(state.said)), state.item.answer)
        return Outcome(
            state=after,
            reward=reward.team(self._final(latest), state.item.answer) - before,
            done=done,
            local_rewards={
                a: self._local(a, answer, state.item.answer) for a, answer in new.items()
            },
        )

    def metrics(self, state: MathState) -> Mapping[str, float]:
        """Returns `solved` (1 if the current final answer is right), `agreed` (1 if all agents gave
        the same number), `rounds` (complete turns) and `valid` (the share of answers in a valid
        format)."""
        latest = dict(state.said)
        return {
            "solved": reward.team(self._final(latest), state.item.answer),
            "agreed": float(self._agreed(latest)),
            "rounds": float(state.turn),
            "valid": state.matched / state.answers if state.answers else 0.0,
        }

    def global_info(self, state: MathState) -> str:
        """m_t: the turn, from 1."""
        return f"turn {min(state.turn + 1, self.turns)} of {self.turns}"

    def reference_actions(self, state: MathState) -> dict[str, str]:
        """The right answer for every agent that acts at this step."""
        return {a: self._written(a, state.item.answer) for a in joint_observations(self, state)}

    def legal_action(self, state: MathState, agent: str, rng: np.random.Generator) -> str:
        """A random small number, for the warm start of the embedded model."""
        return self._written(agent, float(rng.integers(-9, 28)))

    def render(self, state: MathState) -> str:
        """The problem and the newest answers."""
        lines = [f"{agent}: {answer.answer or 'none'}" for agent, answer in state.said]
        return "\n".join([state.item.question, *lines])

    def _shown(self, state: MathState, agent: str) -> str:
        role = agent.partition("_")[0]
        if self.prompt == "compact":
            answers = {speaker: answer.answer or "none" for speaker, answer in state.said}
            return compact_prompt(role, state.item.question, answers)
        blocks = []
        for speaker, answer in state.said:
            kind = "Code" if speaker.startswith("tool") else "Reasoning"
            result = "Printed output" if speaker.startswith("tool") else "Answer"
            blocks.append(f"{speaker}:\n{kind}: {answer.text}\n{result}: {answer.answer or 'none'}")
        return full_prompt(role, state.item.question, "\n\n".join(blocks))

    def _read(self, agent: str, text: str) -> ParsedAnswer:
        text = without_reasoning(text)
        if self.prompt == "compact":
            value = plain_number(text)
            return ParsedAnswer("", text[:_SHOWN].strip(), value, value is not None)
        if not agent.startswith("tool"):
            answer = marked_answer(text)
            if answer is None:
                return ParsedAnswer(text[:_SHOWN], "", None, False)
            return ParsedAnswer(text[:_SHOWN], answer[:_SHOWN], number(answer), True)
        code = code_block(text)
        if code is None:
            return ParsedAnswer("", "", None, False, ran=False)
        result = run_program(code, limits=self.limits)
        if result.error is not None:
            return ParsedAnswer(code, f"{result.error}: {result.message}", None, True, ran=False)
        printed = result.text[:_SHOWN].strip()
        return ParsedAnswer(code, printed, number(printed), True)

    def _written(self, agent: str, value: float) -> str:
        written = f"{value:.15g}"
        if self.prompt == "compact":
            return written
        return f"```python\nprint({written})\n```" if "tool" in agent else f"#### {written}"

    def _local(self, agent: str, answer: ParsedAnswer, truth: float) -> float:
        if self.rewards == "outcome":
            return float(answer.matched)
        if agent.startswith("tool"):
            return reward.tool_reward(answer.matched, answer.ran, answer.value, truth)
        return reward.reasoner_reward(answer.matched, answer.value, truth)

    def _agreed(self, latest: Mapping[str, ParsedAnswer]) -> bool:
        """Whether all agents but the judge gave the same number; False for a single agent."""
        values = [latest[worker].value for worker in self.workers if worker in latest]
        if len(values) < 2 or len(values) < len(self.workers):
            return False
        first = values[0]
        return first is not None and all(v is not None and equal(v, first) for v in values)

    def _final(self, latest: Mapping[str, ParsedAnswer]) -> float | None:
        decides = self.agents[-1] if self.agents[-1] == JUDGE else self.agents[0]
        return latest[decides].value if decides in latest else None


def _named(role: str, count: int) -> tuple[str, ...]:
    return (role,) if count == 1 else tuple(f"{role}_{k + 1}" for k in range(count))
