"""CoopHumanEval: two agents write a helper and a main function (CoLLM, 6.1, D.1, E.2, F.2).

They write at the same time, and tests run the joint program in a sandbox.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colearn.contract import (
    DecPOMDP,
    Headline,
)
from colearn.contract.types import Outcome
from colearn.errors import ConfigError
from colearn.programs.sandbox import Mechanism

from ..checks import check_split
from ..turn_and_reward import turn_and_reward
from . import text
from .actions import legal_function, one_line
from .data import HumanEvalProblem, load_problems
from .parse import AUX
from .reward import HIGHEST, HIGHEST_ALONE, Findings, examine, raw_reward
from .settings import check_settings, make_limits

_COMLRL_SHORT = 0.2
"""In variant comlrl, an episode ends when the reward is within this distance of the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoopHumanEvalState:
    """The program of the last turn and its analysis."""

    item: HumanEvalProblem
    turn: int
    """Turns played so far."""
    findings: Findings | None
    """The analysis of the last turn's program; None before the first turn."""
    reward: float
    """The raw reward of the last turn, before the shift."""


class CoopHumanEval(DecPOMDP[HumanEvalProblem, CoopHumanEvalState]):
    """Two agents write a helper function and the function that the problem asks for.

    The agent `aux` writes a helper function named `aux`, and the agent `main` writes the requested
    function. Both agents see the problem, and neither sees the other's answer. The task joins the
    two answers into one program.

    Both agents share the raw reward of a turn, which is at most 4 (F.2; the weights are CoMLRL's):

        structure    0.4  aux is a function with a return statement
                     0.6  the main function too; else the count ends
        syntax       0.5  both answers parse; else the count ends
        tests        1    share of the problem's tests that pass; the count ends if none does
        cooperation  0.5  the main function calls aux, which the other agent defined
                     1    and is more than a wrapper: `return ...aux(...)...`, or `v = aux(...)`
                          followed by `return v`
                    -0.5  no result of a call is read

    When the count ends, the points of earlier levels are kept. The task adds `reward_shift`, -4 by
    default: rewards are then never positive, so finishing early is never worse than playing on. A
    single agent that plays for both agents (`wrapper: single`) is not paid for cooperation. This
    agent earns at most 2.5, and its episode ends when all tests pass.

    If an answer has fenced blocks, only the text in these blocks counts. Imports, definitions and
    assignments at the left margin count; prose and other statements are ignored. A definition that
    does not parse is a syntax error. Statements that bind the name of the other agent's function
    are ignored too. The task determines from the syntax tree of the main function how the function
    uses aux. Therefore an unreachable call counts, and `map(aux, values)` counts as a call.

    The variants differ in

    - the program: paper joins all kept statements of both answers; comlrl joins only the two
      functions, so that imports and helpers in an answer are lost;
    - the deduction of 0.5: as above in paper; never in comlrl, since CoMLRL's pattern for unused
      results matches almost nothing;
    - the end of an episode: in paper, when all tests pass and the raw reward is 4; in comlrl, when
      the raw reward exceeds 3.8, for which nine passed tests of ten suffice;
    - the feedback: it shows all tests in paper and the first one in comlrl. The reward always
      counts all tests.

    Both variants differ from CoMLRL in further points. CoMLRL runs programs inside its own process,
    allows 10 s for each test, counts only one-line asserts, and extracts functions by pattern.
    CoMLRL's test split is the first 16 items; this task uses the paper's slices. CoMLRL repeats
    prompts and answers at each turn; in this task, both are in the agent's history.

    The paper leaves the following choices open: all weights, the points kept after a failed level,
    the other names that an answer may define, the shift, and m_t, which is chosen as in StrBuild.
    `seconds` (8) limits the time of all tests of a problem together. Any signature that parses is
    valid; with a wrong number of parameters, the tests fail. If the main function is a wrapper that
    does not "effectively utilize" the helper, the episode does not end. The feedback shows the test
    and the error, but not values such as "expected 2, got 1" in the paper's example. An agent's
    feedback includes the other agent's syntax errors. An exception's text is shown unchanged. The
    column "pass" of Table 1 is interpreted as the share of problems whose tests all pass, since it
    equals pass@1 in table 2.

    `data`: 'packaged', 20 problems made for this task; 'hub', the paper's `OpenMLRL/CoopHumanEval`
    (82 items, extra `tasks`); 'humaneval' or 'mbpp', also from the hub; or the path of a
    .jsonl/.csv file or a .json list. The rows of a file have the fields `prompt`, `entry_point` and
    `test`, as in HumanEval. They may also have `task_id`, and `aux` and `main` with a solution. A
    fifth of the data is the test split: [66:82] of the paper's 82 items, the last four of the
    packaged ones, and problems drawn with a fixed seed of other data.

    `prompt='compact'` is for small word-level models. The problem and each function have one line,
    and the words of the feedback are separated by single spaces:

        write aux for fair_share(amounts, people) : Split the sum of ...
        aux yes main yes syntax yes uses no tests 3 of 5               (the next turn)

    Programs run in `colearn.programs.sandbox`. `sandbox` names the sandbox's mechanism, and
    `seconds` limits the time of all tests of a problem. A step takes between a tenth of a second
    and `seconds`, so use `run.step_workers`. Equal programs are run once per process. A program
    that draws random numbers can get a different reward in another process.

    Errors: ConfigError from the constructor, one line that names the setting; from `step` if no
    sandbox works on the machine; MissingExtra if `data: hub` is set
    without the extra `tasks`.
    """

    agents = (AUX, "main")
    headline = Headline("pass")

    def __init__(
        self,
        *,
        variant: Literal["paper", "comlrl"] = "paper",
        horizon: int = 2,
        data: str = "packaged",
        sandbox: Mechanism = "bwrap",
        seconds: float = 8.0,
        reward_shift: float = -HIGHEST,
        prompt: Literal["full", "compact"] = "full",
    ) -> None:
        check_settings(
            choices={
                "variant": variant,
                "sandbox": sandbox,
                "prompt": prompt,
            },
            data=data,
            horizon=horizon,
            reward_shift=reward_shift,
        )
        self.limits = make_limits(seconds)
        self.variant, self.horizon, self.prompt = variant, horizon, prompt
        self.sandbox = sandbox
        self.reward_shift = float(reward_shift)
        self._pay_for_cooperation(True)
        self._items = load_problems(data)

    def alone(self) -> CoopHumanEval:
        """Returns the task without the reward's last level (cooperation), as the paper's single
        models are rewarded (6.2)."""
        task = copy.copy(self)
        task._pay_for_cooperation(False)
        return task

    def _pay_for_cooperation(self, cooperation: bool) -> None:
        self.cooperation = cooperation
        self.highest = HIGHEST if cooperation else HIGHEST_ALONE
        self.reward_range = (self.reward_shift, self.highest + self.reward_shift)

    def items(self, split: str) -> Sequence[HumanEvalProblem]:
        """The problems of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: HumanEvalProblem, rng: np.random.Generator) -> CoopHumanEvalState:
        """The state before any program; nothing is random."""
        return CoopHumanEvalState(item=item, turn=0, findings=None, reward=0.0)

    def observe(self, state: CoopHumanEvalState, agent: str) -> str:
        """The prompt, then the feedback on the last turn; both agents act every turn."""
        problem, findings = state.item, state.findings
        compact = self.prompt == "compact"
        if findings is None:
            written = text.compact_prompt if compact else text.full_prompt
            return written(problem, agent)
        total = len(problem.asserts)
        test_count = total if self.variant == "paper" else 1
        if compact:
            return text.compact_feedback(findings, test_count=test_count, total=total)
        return text.full_feedback(findings, problem, agent, test_count=test_count)

    def step(
        self, state: CoopHumanEvalState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[CoopHumanEvalState]:
        """Join this turn's answers and test them in the sandbox.

        Errors: ConfigError if no sandbox works here.
        """
        findings = examine(
            state.item,
            (actions[AUX], actions["main"]),
            alone=self.variant == "comlrl",
            limits=self.limits,
            sandbox=self.sandbox,
        )
        reward = raw_reward(findings, self.variant, cooperation=self.cooperation)
        if self.variant == "comlrl":
            done = reward > self.highest - _COMLRL_SHORT
        else:
            worked = findings.cooperates and not findings.use.wrapper
            done = findings.solved and (worked or not self.cooperation)
        after = CoopHumanEvalState(
            item=state.item, turn=state.turn + 1, findings=findings, reward=reward
        )
        return Outcome(state=after, reward=reward + self.reward_shift, done=done)

    def metrics(self, state: CoopHumanEvalState) -> Mapping[str, float | None]:
        """Metrics of the last turn: `score`, the raw reward; `pass`, 1 if all tests pass, else 0;
        `tests`, the share of tests that pass; `syntax`, 1 if the joint program parses; `uses_aux`,
        1 if the main function calls the other agent's aux and uses its result. None is measured
        before the first turn has ended."""
        findings = state.findings
        if findings is None:
            return dict.fromkeys(("score", "pass", "tests", "syntax", "uses_aux"))
        return {
            "score": state.reward,
            "pass": float(findings.solved),
            "tests": sum(findings.passed) / len(state.item.asserts),
            "syntax": float(findings.parses),
            "uses_aux": float(findings.cooperates),
        }

    def global_info(self, state: CoopHumanEvalState) -> str:
        """m_t, worded as in StrBuild (E.3)."""
        return turn_and_reward(state.turn, self.horizon, state.reward, self.highest)

    def reference_actions(self, state: CoopHumanEvalState) -> dict[str, str]:
        """The solution in the data; it earns the maximum reward on the packaged problems.

        Errors: ConfigError for a problem without a solution.
        """
        reference = state.item.reference
        if reference is None:
            raise ConfigError(
                f"task.data: {state.item} has no solution; add 'aux' and 'main' to its row"
            )
        written = [one_line(source) if self.prompt == "compact" else source for source in reference]
        return dict(zip(self.agents, written, strict=True))

    def legal_action(self, state: CoopHumanEvalState, agent: str, rng: np.random.Generator) -> str:
        """A random small legal function, chosen independently of the other agent, for the warm
        start of the embedded model."""
        return legal_function(state.item, agent, rng)

    def render(self, state: CoopHumanEvalState) -> str:
        """The joint program of the last turn."""
        return "" if state.findings is None else state.findings.program
