"""The two languages of the loop: Python functions, and steps for models with a small vocabulary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from colearn.programs.sandbox import Limits, Mechanism, check_mechanism, run_tests
from colearn.text.reasoning import without_reasoning

from ..coop_humaneval.data import HumanEvalProblem
from ..coop_humaneval.data import load_problems as load_python
from ..coop_humaneval.parse import read_answer
from ..step_programs import StepProblem, are_steps, guess, run_steps, step_problems
from . import prompts

CODER = "coder"


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """The program parsed from a coder's answer."""

    text: str
    defined: bool
    """Whether the program is valid in its language and has the form that the problem asks for."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of the verifier tool."""

    score: float
    """s, the share of tests that pass."""
    message: str
    """Message of the first failed test."""


P = TypeVar("P")


class CodeLanguage(Protocol[P]):
    """Interface of a language: problems, prompts and verifier of the loop."""

    @property
    def problems(self) -> Mapping[str, Sequence[P]]:
        """The problems by split."""
        ...

    @property
    def prompts(self) -> prompts.Prompts:
        """The prompts of planner, coder and reflector."""
        ...

    @property
    def verify(self) -> Callable[..., Awaitable[Report]]:
        """Runs a problem's tests."""
        ...

    def question(self, problem: P) -> str:
        """The text of a problem in the prompts of planner, coder and reflector."""
        ...

    def read(self, problem: P, answer: str) -> ParsedProgram:
        """Parses the program in a coder's answer."""
        ...

    def arguments(self, problem: P, program: str) -> dict[str, Any]:
        """The keyword arguments of `verify`."""
        ...

    def legal_action(self, problem: P, agent: str, rng: np.random.Generator) -> str:
        """An answer on which the warm start may train."""
        ...


class Python:
    """The language of Python functions, which the sandbox runs."""

    prompts = prompts.PYTHON

    def __init__(self, data: str, limits: Limits, mechanism: Mechanism) -> None:
        self.problems = load_python(data)
        check_mechanism(mechanism)
        self._limits, self._mechanism = limits, mechanism

    def question(self, problem: HumanEvalProblem) -> str:
        """Signature and docstring."""
        return problem.prompt

    def read(self, problem: HumanEvalProblem, answer: str) -> ParsedProgram:
        """Parses the block that defines the function."""
        written = read_answer(answer, problem.entry_point)
        return ParsedProgram(written.code, written.defined)

    def arguments(self, problem: HumanEvalProblem, program: str) -> dict[str, Any]:
        """The program with the problem's tests."""
        return {
            "program": program,
            "entry_point": problem.entry_point,
            "tests": problem.tests,
            "prompt": problem.prompt,
        }

    async def verify(self, program: str, entry_point: str, tests: str, prompt: str) -> Report:
        """Runs the tests; returns the share passed and the message of the first failure."""
        verdict = await asyncio.to_thread(
            run_tests,
            program,
            entry_point,
            tests,
            prompt=prompt,
            limits=self._limits,
            mechanism=self._mechanism,
        )
        return Report(sum(verdict.passed) / len(verdict.passed), verdict.message)

    def legal_action(self, problem: HumanEvalProblem, agent: str, rng: np.random.Generator) -> str:
        """A plan or reflection made of the problem's words, or a program that parses and does
        nothing."""
        if agent == CODER:
            return f"def {problem.entry_point}({problem.params}):\n    return None"
        words = problem.summary.split() or ["write"]
        return " ".join(words[int(n)] for n in rng.integers(len(words), size=4))


class StepLanguage:
    """The language of steps that change a number. The program `times_2 plus_1` solves the problem
    `times_2 then plus_1`."""

    prompts = prompts.STEPS

    def __init__(self) -> None:
        self.problems = step_problems()

    def question(self, problem: StepProblem) -> str:
        """The requested steps."""
        return problem.question

    def read(self, problem: StepProblem, answer: str) -> ParsedProgram:
        """Reads the whole answer as a program."""
        text = without_reasoning(answer).strip()
        return ParsedProgram(text, are_steps(text))

    def arguments(self, problem: StepProblem, program: str) -> dict[str, Any]:
        """The program and the requested steps."""
        return {"program": program, "question": problem.question}

    async def verify(self, program: str, question: str) -> Report:
        """Runs the golden tests; returns the share passed and the message of the first failure."""
        tests = StepProblem(question).tests
        if not are_steps(program):
            return Report(0.0, "no steps")
        results = [(x, run_steps(program, x), expected) for x, expected in tests]
        wrong = [f"{x} gave {y}" for x, y, expected in results if y != expected]
        return Report(1.0 - len(wrong) / len(tests), wrong[0] if wrong else "")

    def legal_action(self, problem: StepProblem, agent: str, rng: np.random.Generator) -> str:
        """A guess of the steps, which is right about a quarter of the time."""
        return guess(problem, rng)
