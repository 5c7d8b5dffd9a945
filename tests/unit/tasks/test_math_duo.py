import ast
import itertools
import json
import operator

import numpy as np
import pytest

from colearn.algorithms.at_grpo import ATGRPO
from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError, MissingExtra
from colearn.rollout.agents import Program
from colearn.rollout.agents.programs import Says as Always
from colearn.rollout.greedy_tree import GreedyTree
from colearn.rollout.grow import grow
from colearn.tasks.math_duo import MathDuo
from colearn.tasks.math_duo import reward as terms
from colearn.tasks.math_duo.checker import equal
from colearn.tasks.math_duo.data import MathProblem, arithmetic, value_of
from colearn.tasks.math_duo.reader import SCRIPT, AnswerReader

RNG = np.random.default_rng(0)


def test_an_endless_answer_is_no_number_the_next_one_is_read_and_no_process_is_left(
    tmp_path, monkeypatch
):
    """9 to the 9,999,999 takes sympy minutes, and nothing in a process stops it."""
    script = SCRIPT.read_text()
    assert script.count("SECONDS = 2\n") == 1
    (tmp_path / SCRIPT.name).write_text(script.replace("SECONDS = 2\n", "SECONDS = 1\n"))
    monkeypatch.setattr("colearn.tasks.math_duo.reader.SCRIPT", tmp_path / SCRIPT.name)
    reader = AnswerReader()
    assert reader.read("9^{1*9999999}") is None
    assert reader.read(r"\frac{3}{4}") == 0.75
    child = reader._child
    reader.close()
    assert child is not None and child.returncode is not None


def test_without_math_verify_an_answer_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"math-verify is not installed.*\[math\]"):
        AnswerReader().read(r"\sqrt{4}")


@pytest.mark.parametrize(
    "one, other, same",
    [
        (1, 1, True),
        (1, 1 + 9e-7, True),
        (1, 1 + 2e-6, False),
        (0, 9e-7, True),
        (0, 2e-6, False),
        (1e6, 1e6 + 0.9, True),  # relative to |b|
        (1e6, 1e6 + 1.1, False),
        (-5, 5, False),
        (0.3333333, 1 / 3, True),
        (0.333, 1 / 3, False),
        (-1e6, -1e6 - 0.5, True),
    ],
)
def test_numeric_equality_has_a_tolerance_of_a_millionth(one, other, same):
    assert equal(one, other) == same
    assert terms.step_score(one, other) == terms.team(one, other) == float(same)


REASONED = [
    # schema matched, number read, truth: format, step
    (True, 7, 7, 1, 1),
    (True, 8, 7, 1, 0),
    (True, None, 7, 1, 0),
    (False, None, 7, 0, 0),
    (True, 7 + 1e-7, 7, 1, 1),
    (True, 7 + 2e-5, 7, 1, 0),
    (True, -7, 7, 1, 0),
    (True, 0.75, 0.75, 1, 1),
    (True, 0, 0, 1, 1),
    (True, 1e9 + 500, 1e9, 1, 1),  # within a millionth of the truth
    (True, 1e9 + 5000, 1e9, 1, 0),
    (False, 7, 7, 0, 1),
]


@pytest.mark.parametrize("matched, printed, truth, form, step", REASONED)
def test_the_reasoners_terms_by_hand(matched, printed, truth, form, step):
    assert terms.format_score(matched) == form
    assert terms.step_score(printed, truth) == terms.team(printed, truth) == step
    expected = 0.2 * form + 0.8 * step
    assert terms.reasoner_reward(matched, printed, truth) == pytest.approx(expected)


RUN = [
    # block matched, program ended well, number printed, truth: format, tool, step
    (True, True, 7, 7, 1, 1, 1),
    (True, True, 8, 7, 1, 1, 0),
    (True, True, None, 7, 1, 1, 0),
    (True, False, None, 7, 1, 0, 0),
    (False, False, None, 7, 0, 0, 0),
    (True, True, 7 - 1e-8, 7, 1, 1, 1),
    (True, True, 7.1, 7, 1, 1, 0),
    (True, True, -2.5, -2.5, 1, 1, 1),
    (True, True, 0, 1e-7, 1, 1, 1),
    (True, True, 0, 1e-5, 1, 1, 0),
    (True, True, 1 / 3, 0.333333, 1, 1, 1),
]


@pytest.mark.parametrize("matched, ran, printed, truth, form, tool, step", RUN)
def test_the_tool_users_terms_by_hand(matched, ran, printed, truth, form, tool, step):
    assert terms.format_score(matched) == form
    assert terms.tool_score(ran) == tool
    assert terms.step_score(printed, truth) == terms.team(printed, truth) == step
    expected = 0.1 * form + 0.1 * tool + 0.8 * step
    assert terms.tool_reward(matched, ran, printed, truth) == pytest.approx(expected)


def python_value(text):
    """Python's own grammar and operators."""
    binary = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}

    def visit(node):
        if isinstance(node, ast.Constant):
            return node.value
        return binary[type(node.op)](visit(node.left), visit(node.right))

    return visit(ast.parse(text, mode="eval").body)


def test_1000_generated_problems_have_the_answers_of_pythons_grammar():
    rng = np.random.default_rng(5)
    for _ in range(1000):
        problem = arithmetic(rng)
        text = problem.question.removeprefix("What is ").removesuffix("?")
        assert problem.answer == python_value(text) == value_of(text)


def test_train_and_test_problems_are_different_whatever_the_seed():
    tasks = [MathDuo(seed=seed) for seed in (0, 1)]
    sets = [{s: set(map(str, task.items(s))) for s in ("train", "test")} for task in tasks]
    assert not (sets[0]["train"] | sets[1]["train"]) & (sets[0]["test"] | sets[1]["test"])


def duo(**settings):
    task = MathDuo(train=4, test=2, seconds=600.0, **settings)
    return task, task.reset(MathProblem("What is 3 + 4?", 7.0), RNG)


def program(line):
    return f"So:\n```python\n{line}\n```"


def test_a_team_that_agrees_ends_the_episode_and_earns_1_if_it_is_right():
    task, state = duo()
    right = task.step(state, {"reasoner": "#### 7", "tool": program("print(3 + 4)")}, RNG)
    assert right.done and right.reward == 1
    assert right.local_rewards == pytest.approx({"reasoner": 1, "tool": 1})
    wrong = task.step(state, {"reasoner": "#### 8", "tool": program("print(8)")}, RNG)
    assert wrong.done and wrong.reward == 0
    assert wrong.local_rewards == pytest.approx({"reasoner": 0.2, "tool": 0.2})


def test_a_team_that_disagrees_goes_on_and_sees_both_answers():
    task, state = duo(turns=2)
    said = {"reasoner": "#### 7", "tool": program("print(9)")}
    outcome = task.step(state, said, RNG)
    assert not outcome.done and outcome.reward == 1  # the reasoner's answer so far is right
    shown = task.observe(outcome.state, "tool")
    assert "Answer: 7" in shown.text and "Printed output: 9" in shown.text and shown.fresh
    assert shown.made_from == ((0, "reasoner"), (0, "tool"))
    last = task.step(outcome.state, said, RNG)
    assert last.done and last.reward == 0  # it adds nothing: the sum is the paper's r_team


def test_a_turn_pays_what_it_adds_so_that_candidates_of_one_turn_differ_by_the_papers_reward():
    """B.1 broadcasts the final answer's 0 or 1 to all turns: of a right and a wrong candidate of
    the reasoner the first is worth 1 more, whatever the answer was before."""
    task, state = duo(turns=3)
    wrong = task.step(state, {"reasoner": "#### 8", "tool": program("print(7)")}, RNG)
    mended = task.step(wrong.state, {"reasoner": "#### 7", "tool": program("print(9)")}, RNG)
    kept = task.step(wrong.state, {"reasoner": "#### 8", "tool": program("print(7)")}, RNG)
    assert (wrong.reward, mended.reward, kept.reward) == (0, 1, 0)
    spoilt = task.step(mended.state, {"reasoner": "#### 9", "tool": program("print(9)")}, RNG)
    right = task.step(mended.state, {"reasoner": "#### 7", "tool": program("print(9)")}, RNG)
    assert (spoilt.reward, right.reward) == (-1, 0)
    assert wrong.reward + mended.reward + spoilt.reward == 0


class Says:
    """Gives a turn's candidates in order, at each turn the same ones."""

    def __init__(self, *candidates):
        self.candidates = itertools.cycle(candidates)

    def act(self, view):
        return next(self.candidates)


class Candidate(Program):
    """A program that is drawn from as a learner is."""

    draws_candidates = True


def test_at_grpo_compares_the_candidates_of_every_turn_by_the_broadcast_reward():
    """The tool user never agrees, so two turns are played. With B.1's r_team of 0 or 1 at each turn
    the reasoner's candidates (no number, 8, 7) are worth 0, 0.2 and 1 + 1, at the second turn, too,
    where the answer was right before: mean 0.733, deviation 0.899."""
    task = MathDuo(train=4, test=2, turns=2, prompt="compact")
    reasoner = Candidate(Says("none", "8", "7"))
    players = {"reasoner": reasoner, "tool": Program(Always(text="9"))}
    parts = ATGRPO(rollout=GreedyTree(3)).checked_parts()
    item = MathProblem("What is 3 + 4?", 7.0)
    (tree,), _ = grow(task, [item], players, parts.rollout, seed=0, credit=parts.credit)
    (advantages,) = parts.advantage(parts.credited([tree]))
    own = [row["reasoner"] for row in advantages if "reasoner" in row]
    worth = np.array([0.0, 0.2, 2.0])
    assert [node.turn for node in tree.nodes] == [0, 1, 1, 1, 2, 2, 2]
    assert own == pytest.approx([*((worth - worth.mean()) / worth.std())] * 2, abs=1e-4)


@pytest.mark.parametrize("answer", [1234567, 12345.678, 1 / 3, -0.5])
def test_the_reference_answer_is_right_to_the_last_digit(answer):
    task = MathDuo(train=1, test=1)
    state = task.reset(MathProblem("how much?", answer), RNG)
    assert task.step(state, task.reference_actions(state), RNG).reward == 1


def test_in_sequence_the_tool_user_sees_the_reasoners_new_answer():
    task, state = duo(order="sequential")
    assert list(joint_observations(task, state)) == ["reasoner"]
    state = task.step(state, {"reasoner": "#### 7"}, RNG).state
    seen = joint_observations(task, state)
    assert list(seen) == ["tool"] and "Answer: 7" in seen["tool"].text
    assert seen["tool"].made_from == ((0, "reasoner"),)


def test_the_judge_of_an_ensemble_sees_all_answers_and_decides():
    task, state = duo(reasoners=2, tools=2, judge=True, turns=1)
    assert task.agents == ("reasoner_1", "reasoner_2", "tool_1", "tool_2", "judge")
    assert task.horizon == 2
    assert list(joint_observations(task, state)) == list(task.agents[:4])
    said = {
        agent: program("print(7)") if "tool" in agent else "#### 8" for agent in task.agents[:4]
    }
    middle = task.step(state, said, RNG)
    assert not middle.done and middle.reward == 0
    seen = joint_observations(task, middle.state)
    assert list(seen) == ["judge"]
    assert seen["judge"].text.count("Answer: 8") == seen["judge"].text.count("output: 7") == 2
    final = task.step(middle.state, {"judge": "#### 7"}, RNG)
    assert final.done and final.reward == 1 and final.local_rewards == {"judge": 1}


def test_a_file_gives_the_problems_whose_answers_are_numbers(tmp_path):
    path = tmp_path / "problems.jsonl"
    rows = [{"problem": f"p{k}", "answer": rf"\frac{{{k}}}{{2}}"} for k in range(20)]
    path.write_text("\n".join(map(json.dumps, [*rows, {"problem": "proof", "answer": "QED"}])))
    task = MathDuo(data=str(path))
    assert (len(task.items("train")), len(task.items("test"))) == (18, 2)
    items = [*task.items("train"), *task.items("test")]
    assert set(items) == {MathProblem(f"p{k}", k / 2) for k in range(20)}
    path.write_text(json.dumps({"question": "?"}))
    with pytest.raises(
        ConfigError, match=r"^task\.data: line 1 of .* has no 'problem' and 'answer'"
    ):
        MathDuo(data=str(path))


def test_a_test_set_of_its_own_leaves_no_question_in_both_splits(tmp_path):
    for name, numbers in (("train", range(10)), ("test", range(8, 12))):
        rows = [json.dumps({"problem": f"p{k}", "answer": k}) for k in numbers]
        (tmp_path / name).write_text("\n".join(rows))
    task = MathDuo(data=str(tmp_path / "train"), test_data=str(tmp_path / "test"))
    assert [str(item) for item in task.items("train")] == [f"p{k}" for k in range(8)]
    assert len(task.items("test")) == 4


@pytest.mark.parametrize("settings", [{}, {"prompt": "compact", "judge": True}])
def test_the_contract_holds_for_legal_play(settings):
    task = MathDuo(train=4, test=2, turns=2, **settings)
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)
