"""Readers of answers against the papers' graders: GSM8K's and Math-Verify's marks, HotpotQA's
script, MHGPO's passage numbers, Stronger-MAS's prompts."""

import numpy as np
import pytest

from colearn.programs.workflow.qa import f1
from colearn.tasks.answers import marked_answer
from colearn.tasks.coder_tester import reward
from colearn.tasks.coder_tester.problem import ProgrammingProblem
from colearn.tasks.coder_tester.running import try_golden
from colearn.tasks.debate.task import Solver
from colearn.tasks.math_duo import MathDuo
from colearn.tasks.math_duo.checker import same_expression
from colearn.tasks.math_duo.data import MathProblem
from colearn.tasks.plan_path import PlanPath
from colearn.tasks.search.reading import read_ranking

RNG = np.random.default_rng(0)
RIGHT = (
    "#### 42",
    "####42",
    "####\n42",
    "#### 42\n\nDone",
    "#### 42\nThat is all.",
    "\\boxed{42}",
    "So the answer is $\\boxed{42}$.",
    "#### \\boxed{42}",
    "#### 41\n#### 42",
    "\\boxed{41}, no: \\boxed{42}",
    "\\fbox{42}",
)
WRONG = ("42", "text #### 42", "##### 42", "#### 42\nor 43", "####", "\\boxed{}", "\\boxed{42")


@pytest.mark.parametrize("said", RIGHT)
def test_an_answer_after_a_mark_or_in_a_box_is_read_whatever_follows(said):
    assert marked_answer(said) == "42"


def test_a_box_ends_at_its_own_brace():
    assert marked_answer("$x = \\boxed{\\frac{3}{4}}$, as $\\sqrt{2}$") == "\\frac{3}{4}"


@pytest.mark.parametrize("said", WRONG)
def test_an_answer_without_a_mark_or_with_two_numbers_is_none(said):
    assert marked_answer(said) is None


@pytest.mark.parametrize("said", ["#### 42\nThat is all.", "\\boxed{41}, no: \\boxed{42}"])
def test_a_marked_or_boxed_answer_is_paid_in_math_and_in_the_transfer_tests(said):
    task = MathDuo(train=1, test=1, tools=0, turns=1)
    state = task.reset(MathProblem("What is 6 x 7?", 42.0), RNG)
    assert task.step(state, {"reasoner": said}, RNG).reward == 1.0
    solver = Solver()
    state = solver.reset(MathProblem("What is 6 x 7?", 42.0), RNG)
    assert solver.step(state, {"solver": said}, RNG).reward == 1.0


@pytest.mark.parametrize(
    ("said", "chosen", "valid"),
    [
        ("0, 2", (0, 2), True),
        ("[3], [1]", (3, 1), True),
        ("0-2", (0, 2), True),
        ("doc-1", (1,), True),
        ("1. 3.", (1, 3), True),
        ("-1", (), False),
        ("\u22121", (), False),
        ("1, -1", (1,), False),
        ("1.5", (), False),
        ("5", (), False),
        ("2 2", (2,), False),
        ("9" * 5000, (), False),
    ],
)
def test_a_reranker_chooses_whole_numbers_of_passages(said, chosen, valid):
    ranking = read_ranking(said, 5)
    assert (ranking.chosen, ranking.valid) == (chosen, valid)


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        # hotpot_evaluate_v1.py: a closed answer is right or 0
        ("yes it is", "yes", 0.0),
        ("yes", "yes it is", 0.0),
        ("Yes.", "yes", 1.0),
        ("no", "yes", 0.0),
        ("noanswer here", "noanswer", 0.0),
        ("no answer", "noanswer", 0.0),
        ("the yes men", "Yes Men", 1.0),
        ("yes prime minister", "Yes Minister", 2 * 2 / (3 + 2)),
    ],
)
def test_f1_of_closed_questions_is_hotpotqas(answer, gold, score):
    assert f1(answer, [gold]) == pytest.approx(score)


def test_a_factorial_equals_its_value_as_an_expression():
    assert same_expression("5040", "7!") and not same_expression("5040", "6!")


def test_a_failed_assertion_hides_no_later_exception():
    """s_run of Stronger-MAS, B.2: 1 if the first golden tests run without an error."""
    problem = ProgrammingProblem(
        name="f",
        question="?",
        entry_point="half",
        asserts="assert half(4) == 2\nassert half(0) == 0\nassert half('') == ''",
    )
    program = "def half(x): return 3 if x == 4 else 1 / x if x == 0 else ''"
    trials = try_golden(problem, program, 60.0)
    assert [trial.error for trial in trials] == [None, "exception", None]
    assert [trial.passed for trial in trials] == [False, False, True]
    assert reward.run_score(trials) == 0.0
    wrong = try_golden(problem, "def half(x): return 3", 60.0)
    assert [trial.error for trial in wrong] == [None] * 3 and reward.run_score(wrong) == 1.0


def test_plan_paths_planner_has_the_prompt_of_its_phase():
    """Appendix D: phase 1 names what the agent receives, phase 2 asks for the simplest plan."""
    task = PlanPath(size=5, turns=2)
    state = task.reset(task.items("train")[0], RNG)
    prompts = []
    for _ in range(2):
        code = '```python\nprint(["U"])\n```'
        state = task.step(state, {"tool": code}, RNG).state
        prompts.append(str(task.observe(state, "plan")))
        state = task.step(state, {"plan": "#### []"}, RNG).state
    first, second = prompts
    adopt = "* If the code/output is correct and sufficient, adopt it."
    simplest = "* Prefer the simplest valid plan; if uncertain, provide the best safe prefix"
    assert adopt in first and simplest not in first and "Give the final action list" in first
    assert simplest in second and adopt not in second and "Give the FINAL action list" in second
    assert "You will receive:" in first and "You will receive:" not in second
