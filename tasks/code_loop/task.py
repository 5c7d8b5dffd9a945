"""UnityMAS-O's workflow D: the reflective verification loop, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from colearn.contract import Headline
from colearn.programs.sandbox import Limits, Mechanism
from colearn.programs.workflow import Answer, Team, Tool, ToolError, Workflow, WorkflowState

from ..checks import check_split
from ..coop_humaneval.data import HumanEvalProblem
from ..step_programs import STEPS, StepProblem
from .languages import CodeLanguage, Python, Report, StepLanguage

ROUNDS = 3
BAD_FORMAT = -1.0


Problem = HumanEvalProblem | StepProblem


class ReflectiveVerification(Workflow[Problem]):
    """A team of a planner, a coder and a reflector writes programs; a verifier tests the programs.

    An episode has up to three rounds. In round i, the planner and the coder answer, the verifier
    runs the problem's tests in the sandbox and computes the score s_i, and the reflector answers.
    The episode ends early when all tests pass. Rewards (sec. 6): the planner and coder of round 0
    earn s_0. The reflector of round i-1 and the planner and coder of round i earn s_i - s_{i-1}. In
    addition, a coder whose answer does not define the function gets a format penalty of -1. The
    team's reward is the last score, which is s_0 plus all differences s_i - s_{i-1}. If the
    verifier fails, the score does not change and the reflector reads the reason.

    data: packaged, humaneval, mbpp or hub, or a .jsonl/.csv file, as for `coop_humaneval`. 'steps'
    selects a separate language for models with a small vocabulary; the task runs programs in this
    language without a sandbox.
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
        sandbox: Mechanism = "bwrap",
    ) -> None:
        self.language: CodeLanguage[Any] = (
            StepLanguage() if data == STEPS else Python(data, Limits(seconds=seconds), sandbox)
        )
        self.tools = (Tool(self.language.verify, timeout=seconds + 30.0),)

    def items(self, split: str) -> Sequence[Problem]:
        """The problems of 'train' or 'test'."""
        problems = self.language.problems
        check_split(split)
        return problems[split]

    async def run(self, team: Team, item: Problem) -> None:
        """Plays rounds of plan, program, verification and reflection."""
        language, question = self.language, self.language.question(item)
        texts = language.prompts
        before, reflection = 0.0, None
        history = ""
        for number in range(ROUNDS):
            plan = await team.planner(texts.plan.format(question=question, history=history))
            code = await team.coder(
                texts.code.format(question=question, history=history, plan=plan)
            )
            written = language.read(item, code)
            if not written.defined:
                team.reward(BAD_FORMAT, to=code)
            report = await team.verify(**language.arguments(item, written.text))
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
            verdict = texts.verdict.format(
                program=code, score=report.score, message=report.message
            ).rstrip()
            reflection = await team.reflector(
                texts.reflect.format(question=question, verdict=verdict)
            )
            history = texts.history.format(verdict=verdict, reflection=reflection)
        team.reward(before)

    def global_info(self, state: WorkflowState[Problem]) -> str:
        """m_t: the round's score so far."""
        return f"score {state.measured.get('score', 0.0):.2f}"

    def legal_action(
        self, state: WorkflowState[Problem], agent: str, rng: np.random.Generator
    ) -> str:
        """For Python, words or a program that does nothing; for steps, a guess."""
        return self.language.legal_action(state.item, agent, rng)
