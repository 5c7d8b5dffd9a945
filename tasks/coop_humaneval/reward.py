"""Reward of a pair of answers: structure, syntax, tests and cooperation."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from colearn.errors import ConfigError
from colearn.programs.sandbox import Limits, Mechanism, Verdict, check_mechanism, run_tests

from .data import HumanEvalProblem
from .parse import AUX, read_answer
from .use import Use, find_use

AUX_DEFINED, MAIN_DEFINED, PARSES = 0.4, 0.6, 0.5
TESTS = 1.0
CALLS, SUBSTANCE, IGNORES = 0.5, 1.0, -0.5
HIGHEST_ALONE = AUX_DEFINED + MAIN_DEFINED + PARSES + TESTS
"""Maximum reward without cooperation."""
HIGHEST = HIGHEST_ALONE + CALLS + SUBSTANCE

_SETTLED = (None, "syntax", "import", "exception", "assertion", "forbidden")
"""Verdict errors that do not depend on the load of the machine."""
_MOST_KNOWN = 4096
_known: OrderedDict[tuple[object, ...], Verdict] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Results of static analysis and tests for one joint program."""

    program: str
    aux_defined: bool
    main_defined: bool
    syntax_error: str
    """Message of the syntax error, with the name of its function; '' if there is none."""
    use: Use
    passed: tuple[bool, ...]
    """Whether each test passed; empty if the program was not run."""
    message: str
    """Message of the first failed test; '' if none failed."""

    @property
    def parses(self) -> bool:
        return self.main_defined and not self.syntax_error

    @property
    def solved(self) -> bool:
        return bool(self.passed) and all(self.passed)

    @property
    def cooperates(self) -> bool:
        """Whether the main function calls the other agent's `aux` and uses its result."""
        return self.aux_defined and self.use.calls and not self.use.ignored


def examine(
    problem: HumanEvalProblem,
    answers: tuple[str, str],
    *,
    alone: bool,
    limits: Limits,
    sandbox: Mechanism,
) -> Findings:
    """Join the answers of the auxiliary and the main agent, and test the program in the sandbox if
    it defines the main function and parses. alone: join only the two functions.

    Errors: ConfigError naming `task.sandbox` if no sandbox works here.
    """
    name = problem.entry_point
    aux = read_answer(answers[0], AUX, reserved=frozenset({name}), alone=alone)
    main = read_answer(answers[1], name, reserved=frozenset({AUX}), alone=alone)
    errors = [
        f"{function}, {part.error}" for function, part in ((AUX, aux), (name, main)) if part.error
    ]
    program = "\n\n".join(part for part in (problem.preamble, aux.code, main.code) if part)
    passed: tuple[bool, ...] = ()
    message = ""
    if main.defined and not errors:
        verdict = _verdict(problem, program, limits, sandbox)
        passed, message = verdict.passed, verdict.message
    return Findings(
        program=program,
        aux_defined=aux.defined,
        main_defined=main.defined,
        syntax_error="; ".join(errors),
        use=Use() if main.function is None else find_use(main.function),
        passed=passed,
        message=message,
    )


def raw_reward(findings: Findings, variant: str, *, cooperation: bool = True) -> float:
    """The raw reward, in [0, 4], or in [0, 2.5] if cooperation is not paid. The count ends at the
    first level that fails; the points of earlier levels are kept."""
    reward = AUX_DEFINED * findings.aux_defined
    if not findings.main_defined:
        return reward
    reward += MAIN_DEFINED
    if not findings.parses:
        return reward
    reward += PARSES + TESTS * sum(findings.passed) / len(findings.passed)
    if (
        not cooperation
        or not any(findings.passed)
        or not findings.aux_defined
        or not findings.use.calls
    ):
        return reward
    reward += CALLS + SUBSTANCE * (not findings.use.wrapper)
    return reward + IGNORES * (findings.use.ignored and variant == "paper")


def _verdict(
    problem: HumanEvalProblem, program: str, limits: Limits, sandbox: Mechanism
) -> Verdict:
    """The verdict on a program, cached for equal programs: a converging policy repeats its
    programs."""
    key = (problem.prompt, problem.tests, program, limits, sandbox)
    if key in _known:
        _known.move_to_end(key)
        return _known[key]
    try:
        check_mechanism(sandbox)
    except ConfigError:
        raise ConfigError(
            f"task.sandbox: '{sandbox}' does not work here; install bubblewrap (apt-get install "
            "bubblewrap), allow user namespaces, or set it to unsafe to run programs with limits "
            "only"
        ) from None
    verdict = run_tests(
        program,
        problem.entry_point,
        problem.tests,
        prompt=problem.prompt,
        limits=limits,
        mechanism=sandbox,
    )
    if verdict.error in _SETTLED:
        _known[key] = verdict
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return verdict
