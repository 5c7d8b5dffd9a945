"""Code: one agent writes a program and another writes its tests (Stronger-MAS, B.2 and C.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from colearn.contract import (
    DecPOMDP,
    Headline,
    joint_observations,
)
from colearn.contract.types import Observation, Outcome

from ..checks import check_choice, check_number, check_split, check_whole
from ..step_programs import KNOWN, StepProblem, guess
from . import reward
from .data import load_problems
from .problem import Case, ProgrammingProblem
from .reading import INPUT, OUTPUT, read_program, read_test
from .running import CaseResult, try_golden, try_test
from .text import TurnRecord, coder_prompt, tester_prompt

CODER, TESTER = "coder", "tester"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeState:
    """Answers so far and their test results."""

    item: ProgrammingProblem
    turn: int = 0
    """Complete turns played."""
    waiting: str | None = None
    """In sequential play, the coder's program of this turn, kept until the tester has answered; ''
    if the coder's answer had no valid format."""
    rounds: tuple[TurnRecord, ...] = ()
    """The turns so far."""
    passed: float = 0.0
    """p of the newest program: the share of golden tests that it passes."""
    answers: int = 0
    valid: int = 0
    """Number of answers in a valid format."""


@dataclass(kw_only=True, eq=False)
class CoderTester(DecPOMDP[ProgrammingProblem, CodeState]):
    """One agent writes programs and another writes unit tests, for at most T turns (B.2).

    In each turn `coder` writes a program and `tester` writes one unit test. The episode ends when
    the program passes the test. Programs run in the sandbox.

    The score p of a program is the share of golden tests that it passes. At each turn, the team
    earns the change of p. The sum over turns is the p of the last program, which is the paper's
    r_team. Among the candidates of one turn, p and its change differ by a constant, which cancels
    in group advantages. Local rewards:

        coder   0.1 builds + 0.1 runs + 0.8 p       runs: no crash on the first two golden tests
        tester  0.2 valid + 0.8 agrees              valid: references run on it; agrees: pass it

    An agent's local reward is 0 if its answer cannot be read. The answer of `coder` is the only
    fenced block of Python; the answer of `tester` is the text after the only `**Test Input:**` and
    the only `**Test Output:**`. On problems without reference programs, the tester earns nothing
    (its mask is 0).

    `data`: 'packaged', the path of a .jsonl/.csv file, or a data set from the hub (extra `tasks`):
    'humaneval', 'mbpp', 'apps' (introductory problems) or 'codecontests'. `test_data` is the test
    split, such as 'livecodebench'. By default, it is the official test split of `data`
    ('mbpp_test', 'apps_test' or 'codecontests_test'), or a fifth of the data if there is no
    official one. Problems of APPS and LiveCodeBench that ask for a function are left out. In
    HumanEval and MBPP, a program defines a function, and a test consists of the function's
    arguments and its return value in Python syntax. `data: steps` selects a separate language for
    models with a small vocabulary: the program `times_2 plus_1` solves `times_2 then plus_1`, and a
    test consists of two numbers.

    The paper leaves the following choices open. In this task, "pass > tau_mut" means that more than
    0.6 of up to three reference programs pass a test. The smoke subset, which decides `runs`, has
    two tests. In sequential play, the tester sees the new program. A single agent's episode ends
    when the agent repeats its program unchanged.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra.
    """

    headline = Headline("solved")

    variant: Literal["team", "single"] = "team"
    """'single': `coder` plays alone and refines its own program. The paper's single agent has
    `turns: 1`."""
    order: Literal["parallel", "sequential"] = "parallel"
    """'parallel': both agents answer at the same time. 'sequential': `tester` sees the new
    program."""
    turns: int = 4
    """T, the maximum number of turns. In sequential play, a turn of the team consists of two steps
    of the task."""
    rewards: Literal["shaped", "outcome"] = "shaped"
    """'outcome': the team's reward is 1 if all golden tests pass; a local reward is 1 for a valid
    format (B.6)."""
    data: str = "packaged"
    test_data: str | None = None
    golden: int = 10
    """Maximum number of golden tests per problem; the first ones are run."""
    seconds: float = 10.0
    """Time limit in seconds for a program on all golden tests, and separately for each test of the
    tester."""

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, ("team", "single"))
        check_choice("order", self.order, ("parallel", "sequential"))
        check_choice("rewards", self.rewards, ("shaped", "outcome"))
        check_whole("turns", self.turns, 1)
        check_whole("golden", self.golden, 1)
        check_number("seconds", self.seconds, 0.1, 600.0)
        self.agents = (CODER, TESTER) if self.variant == "team" else (CODER,)
        self.horizon = self.turns * (2 if self._in_sequence else 1)
        self.pays = frozenset({"team", "local"})
        self.reward_range = (-1.0, 1.0)
        self._problems = load_problems(self.data, self.test_data, self.golden)

    def items(self, split: str) -> Sequence[ProgrammingProblem]:
        """The problems of 'train' or 'test'."""
        check_split(split)
        return self._problems[split]

    def reset(self, item: ProgrammingProblem, rng: np.random.Generator) -> CodeState:
        """The state before any answer; nothing is random."""
        return CodeState(item=item)

    def observe(self, state: CodeState, agent: str) -> Observation | None:
        """Returns the problem and, after the first turn, the mismatches so far; None for an agent
        that does not act at this step."""
        tests_now = state.waiting is not None
        if self._in_sequence and (agent == TESTER) != tests_now:
            return None
        steps = 2 if self._in_sequence else 1
        places = {CODER: 0, TESTER: steps - 1}
        made_from = [
            (steps * turn + places[a], a) for turn in range(state.turn) for a in self.agents
        ]
        if tests_now:
            made_from.append((steps * state.turn, CODER))
        if agent == CODER:
            text = coder_prompt(state.item, state.rounds)
        else:
            text = tester_prompt(state.item, state.rounds, state.waiting)
        return Observation(text, fresh=True, made_from=tuple(made_from))

    def step(
        self, state: CodeState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[CodeState]:
        """Run the program on the golden tests and on the tester's test; nothing is random.

        Errors: ConfigError if no sandbox works here.
        """
        local: dict[str, float] = {}
        code, passed, team, valid = state.waiting, state.passed, 0.0, state.valid
        if CODER in actions:
            code = read_program(state.item, actions[CODER])
            trials = try_golden(state.item, code, self.seconds) if code else None
            passed = reward.team(trials or ())
            team = reward.margin(self._worth(state.passed), self._worth(passed))
            local[CODER] = self._local(bool(code), reward.coder_reward(trials))
            valid += bool(code)
        test = None
        if TESTER in actions:
            test = read_test(state.item, actions[TESTER])
            verdicts = None if test is None else self._references(state.item, test)
            local[TESTER] = self._local(test is not None, reward.tester_reward(verdicts))
            valid += test is not None
        after = replace(
            state, passed=passed, answers=state.answers + len(actions), valid=valid, waiting=code
        )
        ends = not self._in_sequence or TESTER in actions
        if not ends:
            return Outcome(state=after, reward=team, local_rewards=local)
        trial = None
        if code and test is not None:
            trial = try_test(state.item, code, test, self.seconds)
        played = TurnRecord(code or "", test, trial.printed if trial else "")
        done = self._settled(state.rounds, played, trial) or state.turn + 1 == self.turns
        after = replace(after, waiting=None, turn=state.turn + 1, rounds=(*state.rounds, played))
        return Outcome(state=after, reward=team, done=done, local_rewards=local)

    def metrics(self, state: CodeState) -> Mapping[str, float]:
        """Returns `solved` (1 if all golden tests pass), `passed` (the share of golden tests that
        pass), `rounds` (complete turns) and `valid` (the share of answers in a valid format)."""
        return {
            "solved": float(state.passed == 1.0),
            "passed": state.passed,
            "rounds": float(state.turn),
            "valid": state.valid / state.answers if state.answers else 0.0,
        }

    def global_info(self, state: CodeState) -> str:
        """m_t: the turn, from 1, and p in percent."""
        turn = min(state.turn + 1, self.turns)
        return f"turn {turn} of {self.turns} passed {100 * state.passed:.0f}"

    def reference_actions(self, state: CodeState) -> dict[str, str] | None:
        """Returns the first reference program and the first golden test; None if the problem has no
        reference program."""
        if not state.item.solutions or not state.item.tests:
            return None
        item = state.item
        actions = {CODER: _block(item, item.solutions[0]), TESTER: _written(item, item.tests[0])}
        return {agent: actions[agent] for agent in joint_observations(self, state)}

    def legal_action(self, state: CodeState, agent: str, rng: np.random.Generator) -> str:
        """The program or a test of a random problem, for the warm start of the embedded model."""
        problems = self._problems["train"]
        problem = problems[int(rng.integers(len(problems)))]
        if state.item.steps:
            return self._guess(state.item, problem, agent, rng)
        if agent == TESTER:
            tests = problem.tests or (Case("0", "0"),)
            return _written(problem, tests[int(rng.integers(len(tests)))])
        return _block(problem, problem.solutions[0] if problem.solutions else "print(0)")

    def render(self, state: CodeState) -> str:
        """The newest program and test."""
        if not state.rounds:
            return state.item.name
        last = state.rounds[-1]
        test = "no test" if last.test is None else f"{last.test.input} -> {last.test.output}"
        return (
            f"{state.item.name}\n{last.code or 'no program'}\n{test}: {last.printed or 'nothing'}"
        )

    def _guess(
        self,
        item: ProgrammingProblem,
        other: ProgrammingProblem,
        agent: str,
        rng: np.random.Generator,
    ) -> str:
        """For steps: returns a random program or test, which sometimes fits this problem."""
        if agent == CODER:
            return guess(StepProblem(item.question), rng)
        known = item if rng.random() < KNOWN else other
        return _written(known, known.tests[int(rng.integers(len(known.tests)))])

    @property
    def _in_sequence(self) -> bool:
        return self.order == "sequential" and len(self.agents) > 1

    def _settled(
        self, before: Sequence[TurnRecord], played: TurnRecord, trial: CaseResult | None
    ) -> bool:
        """Whether the program passes the test, or, for a single agent, whether it is unchanged."""
        if self.variant == "single":
            return bool(before) and bool(played.code) and before[-1].code == played.code
        return trial is not None and trial.passed

    def _references(self, item: ProgrammingProblem, test: Case) -> tuple[CaseResult, ...]:
        return tuple(try_test(item, program, test, self.seconds) for program in item.solutions)

    def _worth(self, passed: float) -> float:
        return passed if self.rewards == "shaped" else float(passed == 1.0)

    def _local(self, valid: bool, shaped: float) -> float:
        return float(valid) if self.rewards == "outcome" else shaped


def _block(problem: ProgrammingProblem, program: str) -> str:
    if problem.steps:
        return program
    return f"**Code:**\n```python\n{program.strip()}\n```"


def _written(problem: ProgrammingProblem, test: Case) -> str:
    if problem.steps:
        return f"{test.input} {test.output}"
    return f"{INPUT}\n{test.input.strip()}\n{OUTPUT}\n{test.output.strip()}"
