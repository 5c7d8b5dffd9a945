"""MARSHAL's transfer tests as workflows over questions: two teams and a single agent."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal

import numpy as np

from colearn.contract import Headline
from colearn.contract.held_out import separate
from colearn.errors import ConfigError
from colearn.programs.workflow import Team, Workflow, WorkflowState
from colearn.programs.workflow.qa import exact_match

from ..answers import final_answer, marked_answer
from ..checks import check_choice, check_split, check_unset, check_whole
from ..math_duo.checker import equal, number, same_expression
from ..math_duo.data import MathProblem, load_problems
from ..search.items import load_questions, load_tested
from ..search.question import Question
from ..search.world import KINDS, World
from . import prompts
from .choices import letter_of, load_choices
from .expressions import load_expressions

Item = MathProblem | Question


def tested_on(data: str, train: Sequence[Item], world: World) -> dict[str, Sequence[Item]]:
    """Returns the questions of `data` as the test split, and `train` without these questions as the
    training split.

    Errors: as `load_questions`; ConfigError if no question is left to train on.
    """
    questions = [item for item in train if isinstance(item, Question)]
    tested = load_tested(data, world, KINDS)
    splits = separate(questions, tested, attrgetter("text"), source=f"task.test_data: {data}")
    if not splits["train"]:
        raise ConfigError("task.test_data: holds all of task.data; name another set to train on")
    return dict(splits)


class AnswerTeam(Workflow[Item]):
    """Base class of teams whose roles discuss one problem; a right last answer pays the team 1.

    - `subject`: the kind of answer. 'math': a number after `####` or in a `\\boxed{}`, compared
      within 1e-6. 'expression': an expression, interval, tuple or matrix, compared by math-verify,
      as in all 500 problems of MATH500. 'choice': the letter of an option. 'qa': words after
      `####`, compared after SQuAD's normalisation.
    - `data`: 'generated', or data of `math_duo` (a hub name or a .jsonl/.csv file) or of the search
      teams (also 'packaged'). For 'choice', `data` is 'aqua' or the published file of AQUA-RAT,
      MMLU or GPQA; for MMLU, it can also be a folder of .csv files. `train` and `test` are the
      numbers of generated problems in each split.
    - `test_data`: the test split, such as 'aime24', 'gsm8k_test', 'mmlu_stem' or 'gpqa'; by default
      the test split of `data`. If `test_data` is a file, all its rows are used.
    - `rounds`: maximum number of exchanges.

    The paper uses the teams only to test how trained players transfer (MARSHAL, section 4.3) and
    prints none of the teams' prompts. The teams can also be trained.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra.
    """

    measures = ("correct", "answered", "rounds")
    headline = Headline("correct")
    pays = frozenset({"team"})

    def __init__(
        self,
        *,
        subject: Literal["math", "expression", "choice", "qa"] = "math",
        data: str = "generated",
        test_data: str | None = None,
        rounds: int = 2,
        train: int | None = None,
        test: int | None = None,
        seed: int | None = None,
    ) -> None:
        check_choice("subject", subject, ("math", "expression", "choice", "qa"))
        if data != "generated":
            unused = {"train": train, "test": test, "seed": seed}
            check_unset(unused, "unless task.data is 'generated'")
        train, test = 64 if train is None else train, 64 if test is None else test
        seed = 0 if seed is None else seed
        for name, value in {"rounds": rounds, "train": train, "test": test}.items():
            check_whole(name, value, 1)
        self.subject, self.rounds = subject, rounds
        self.horizon = self.calls(rounds)
        self.reward_range = (0.0, 1.0)
        self._splits: dict[str, Sequence[Item]] = {}
        if subject == "math":
            self._splits.update(load_problems(data, test_data, train, test, seed))
        elif subject == "expression":
            self._splits.update(load_expressions(data, test_data, train, test, seed))
        elif subject == "choice":
            self._splits.update(load_choices(data, test_data, train, test, seed))
        else:
            world = World(seed=seed, people=48, towns=12)
            self._splits.update(load_questions(data, world, KINDS)[0])
            if test_data is not None:
                self._splits.update(tested_on(test_data, self._splits["train"], world))

    def calls(self, rounds: int) -> int:
        """The maximum number of calls per episode."""
        raise NotImplementedError

    def items(self, split: str) -> Sequence[Item]:
        """The problems of 'train' or 'test'."""
        check_split(split)
        return self._splits[split]

    def grade(self, team: Team, item: Item, text: str, rounds: int) -> None:
        """Rewards the team for its final answer."""
        answer = marked_answer(text)
        correct = answer is not None and self.right(item, answer)
        team.measure(correct=correct, answered=answer is not None, rounds=rounds)
        team.reward(float(correct))

    def right(self, item: Item, answer: str) -> bool:
        """Whether an answer is correct."""
        if isinstance(item, Question) and self.subject == "choice":
            return letter_of(answer) == item.answers[0]
        if isinstance(item, Question) and self.subject == "expression":
            return same_expression(item.answers[0], answer)
        if isinstance(item, Question):
            return exact_match(answer, item.answers) == 1.0
        value = number(answer)
        return value is not None and equal(value, item.answer)

    def asked(self, item: Item) -> str:
        """The question text."""
        return item.text if isinstance(item, Question) else item.question

    def global_info(self, state: WorkflowState[Item]) -> str:
        """m_t: the turn, from 1. The team is paid only at the end, so the last reward is 0 until
        then."""
        return f"turn {min(state.turn + 1, self.horizon)}"

    def privileged_info(self, state: WorkflowState[Item]) -> str:
        """The answer."""
        item = state.item
        return f"answer {item.answers[0] if isinstance(item, Question) else item.answer}"

    def legal_action(self, state: WorkflowState[Item], agent: str, rng: np.random.Generator) -> str:
        """A guess in the requested format."""
        words = self.asked(state.item).rstrip("?").split()
        return f"#### {words[int(rng.integers(len(words)))]}"


class Debate(AnswerTeam):
    """Multi-agent debate: two agents argue about an answer and a third judges (Liang et al. 2023).

    In each of up to `rounds` rounds, `affirmative` answers, and `negative` disagrees and gives
    another answer. After each round, `judge` reads both answers. The judge ends the debate by
    naming an answer, and must name an answer after the last round.
    """

    agents = ("affirmative", "negative", "judge")

    def calls(self, rounds: int) -> int:
        return 3 * rounds

    async def run(self, team: Team, item: Item) -> None:
        """Plays rounds of an argument, a refutation and a verdict."""
        question, refuted = self.asked(item), ""
        for turn in range(1, self.rounds + 1):
            if turn == 1:
                claim = await team.affirmative(prompts.OPENING.format(question=question))
            else:
                claim = await team.affirmative(
                    prompts.REPLY.format(other="The negative side", said=refuted), fresh=False
                )
            template = prompts.REFUTATION if turn == 1 else prompts.REPLY
            refuted = await team.negative(
                template.format(question=question, other="The affirmative side", said=claim),
                fresh=turn == 1,
            )
            last = turn == self.rounds
            judge_template = prompts.VERDICT if last else prompts.MODERATION
            verdict = await team.judge(
                judge_template.format(question=question, claim=claim, refutation=refuted)
            )
            if last or final_answer(verdict) is not None:
                return self.grade(team, item, verdict, turn)


class Solver(AnswerTeam):
    """A single agent that answers once: the single-agent setting of MARSHAL's Table 16."""

    agents = ("solver",)

    def calls(self, rounds: int) -> int:
        return 1

    async def run(self, team: Team, item: Item) -> None:
        """Asks the agent for one answer."""
        answer = await team.solver(prompts.SOLVE.format(question=self.asked(item)))
        return self.grade(team, item, answer, 1)


class AssistantTeam(AnswerTeam):
    """AutoGen's conversation of two agents: one solves and one checks (Wu et al. 2024).

    The agent `assistant` solves the problem. The agent `proxy` checks the answer and asks again,
    until the proxy's last line is TERMINATE or `rounds` rounds are over. The assistant's last
    answer counts.
    """

    agents = ("assistant", "proxy")

    def calls(self, rounds: int) -> int:
        return 2 * rounds - 1

    async def run(self, team: Team, item: Item) -> None:
        """Alternates answers and checks."""
        question = self.asked(item)
        answer = await team.assistant(prompts.SOLVE.format(question=question))
        for turn in range(1, self.rounds):
            checked = await team.proxy(
                prompts.CHECK.format(question=question, answer=answer), fresh=turn == 1
            )
            if _is_done(checked):
                return self.grade(team, item, answer, turn)
            answer = await team.assistant(prompts.AGAIN.format(said=checked), fresh=False)
        return self.grade(team, item, answer, self.rounds)


def _is_done(checked: str) -> bool:
    """Whether the last line consists of the word TERMINATE alone, apart from emphasis and a full
    stop."""
    last = checked.rstrip().rpartition("\n")[2]
    return last.strip(" \t\r*_`.") == prompts.DONE
