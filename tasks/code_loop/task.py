"""UnityMAS-O's workflow D: the reflective verification loop, for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colearn.contract import Headline, LegalActions
from colearn.errors import ConfigError, nearest
from colearn.sandbox import Limits, choose_mechanism, run_tests
from colearn.workflow import Answer, Team, Tool, ToolError, Workflow, WorkflowState

from ..coop_humaneval.data import HumanEvalProblem, load_problems
from ..coop_humaneval.parse import read_answer
from . import prompts

ROUNDS = 3
BAD_FORMAT = -1.0


@dataclass(frozen=True, slots=True)
class Report:
    """Result of the verifier tool."""

    score: float
    """s: the share of tests that pass."""
    message: str
    """Why the first failed one did."""


class ReflectiveVerification(Workflow[HumanEvalProblem], LegalActions):
    """A planner, a coder and a reflector; the verifier runs the problem's tests in the sandbox.

    Up to three rounds of planner, coder, verifier (score s_i), reflector; it ends early when all
    tests pass. Rewards (sec. 6): s_0 for the planner and coder of round 0. s_i - s_{i-1} for the
    reflector of round i-1 and the planner and coder of round i. On top, the format penalty of -1 to
    a coder whose answer does not define the function. The team's reward is the last score, which is
    s_0 plus the margins. A verifier that fails leaves the score as it was; the reflector reads why.

    data: packaged, humaneval, mbpp or hub, or a .jsonl/.csv file, as for `coop_humaneval`.
    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra.
    """

    agents = ("planner", "coder", "reflector")
    horizon = 3 * ROUNDS - 1
    measures = ("score", "passed", "rounds")
    headline = Headline("score")

    def __init__(
        self,
        *,
        data: str = "packaged",
        seconds: float = 8.0,
        sandbox: Literal["auto", "bwrap", "namespaces", "unsafe"] = "auto",
    ) -> None:
        self._problems = load_problems(data)
        self.limits = Limits(seconds=seconds)
        self.mechanism = choose_mechanism(sandbox)
        self.tools = (Tool(self.verify, timeout=seconds + 30.0),)

    def items(self, split: str) -> Sequence[HumanEvalProblem]:
        """The problems of 'train' or 'test'."""
        if split not in self._problems:
            known = nearest(split, self._problems)
            raise ConfigError(f"task.items: unknown split '{split}'; {known}")
        return self._problems[split]

    async def verify(self, program: str, entry_point: str, tests: str, prompt: str) -> Report:
        """Runs the tests: the share passed, and the message of the first failure."""
        verdict = await asyncio.to_thread(
            run_tests,
            program,
            entry_point,
            tests,
            prompt=prompt,
            limits=self.limits,
            mechanism=self.mechanism,
        )
        return Report(sum(verdict.passed) / len(verdict.passed), verdict.message)

    async def run(self, team: Team, item: HumanEvalProblem) -> None:
        """Rounds of plan, program, verification and reflection."""
        before, reflection = 0.0, None
        history = ""
        for number in range(ROUNDS):
            plan = await team.planner(prompts.plan(item.prompt, history))
            code = await team.coder(prompts.code(item.prompt, plan, history))
            written = read_answer(code, item.entry_point)
            if not written.defined:
                team.reward(BAD_FORMAT, to=code)
            report = await team.verify(written.code, item.entry_point, item.tests, item.prompt)
            if isinstance(report, ToolError):
                report = Report(before, report)
            earned: list[Answer] = [plan, code] if reflection is None else [reflection, plan, code]
            team.reward(report.score - before, to=earned)
            team.measure(
                score=report.score, passed=float(report.score == 1.0), rounds=float(number + 1)
            )
            before = report.score
            if report.score == 1.0 or number + 1 == ROUNDS:
                break
            told = prompts.verdict(code, report.score, report.message)
            reflection = await team.reflector(prompts.reflect(item.prompt, told))
            history = prompts.history(told, reflection)
        team.reward(before)

    def global_info(self, state: WorkflowState[HumanEvalProblem]) -> str:
        """m_t: the round's score so far."""
        return f"score {state.measured.get('score', 0.0):.2f}"

    def legal_action(
        self, state: WorkflowState[HumanEvalProblem], agent: str, rng: np.random.Generator
    ) -> str:
        """A plan or reflection of the problem's words; a program that parses and does nothing."""
        if agent == "coder":
            return f"def {state.item.entry_point}({state.item.params}):\n    return None"
        words = state.item.summary.split() or ["write"]
        return " ".join(words[int(n)] for n in rng.integers(len(words), size=4))
