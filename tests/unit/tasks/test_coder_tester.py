"""The coder and the tester: the terms of appendix B.2 by hand, turns, prompts, data."""

import base64
import json
import pickle
import sys
import types
import zlib

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.methods.advantage.agent_turn_groups import AgentTurn
from colearn.tasks.coder_tester import CoderTester
from colearn.tasks.coder_tester import problem as problems
from colearn.tasks.coder_tester import reward as terms
from colearn.tasks.coder_tester.hub import HUB_SETS, private_cases
from colearn.tasks.coder_tester.reading import read_test
from colearn.tasks.coder_tester.running import CaseResult, try_golden, try_test

RNG = np.random.default_rng(0)
GOOD, WRONG = CaseResult(True, None), CaseResult(False, None)
SYNTAX, IMPORT, RAISED, LATE = (
    CaseResult(False, error) for error in ("syntax", "import", "exception", "timeout")
)

GOLDEN = [
    # results of the golden tests: share passed, builds, smoke run fine
    ((GOOD,), 1.0, 1, 1),
    ((WRONG,), 0.0, 1, 1),
    ((SYNTAX,), 0.0, 0, 0),
    ((IMPORT, IMPORT), 0.0, 0, 0),
    ((RAISED, GOOD), 0.5, 1, 0),
    ((GOOD, RAISED), 0.5, 1, 0),
    ((GOOD, WRONG, RAISED), 1 / 3, 1, 1),  # the third is not of the smoke subset
    ((LATE, LATE, LATE, LATE), 0.0, 1, 0),
    ((GOOD, GOOD, LATE, LATE), 0.5, 1, 1),
    ((GOOD, GOOD, GOOD, WRONG, WRONG), 0.6, 1, 1),
    ((WRONG, GOOD, GOOD, GOOD), 0.75, 1, 1),
    ((), 0.0, 0, 0),
]


@pytest.mark.parametrize("trials, share, builds, runs", GOLDEN)
def test_the_coders_terms_by_hand(trials, share, builds, runs):
    assert terms.team(trials) == terms.pass_score(trials) == pytest.approx(share)
    assert terms.build_score(trials) == builds
    assert terms.run_score(trials) == runs
    expected = 0.1 * builds + 0.1 * runs + 0.8 * share
    assert terms.coder_reward(trials) == pytest.approx(expected)
    assert terms.coder_reward(None) == terms.coder_reward(()) == 0


REFERENCES = [
    # references on the tester's test: valid, agrees
    ((GOOD,), 1, 1),
    ((WRONG,), 1, 0),
    ((RAISED,), 0, 0),
    ((LATE,), 0, 0),
    ((GOOD, GOOD), 1, 1),
    ((GOOD, WRONG), 1, 0),  # a half is not more than 0.6
    ((GOOD, GOOD, WRONG), 1, 1),  # two thirds are
    ((GOOD, GOOD, RAISED), 1, 1),
    ((GOOD, WRONG, RAISED), 1, 0),
    ((GOOD, RAISED, RAISED), 0, 0),
    ((WRONG, WRONG, WRONG), 1, 0),
    ((GOOD, GOOD, GOOD, WRONG, WRONG), 1, 0),  # 0.6 is not more than 0.6
]


@pytest.mark.parametrize("found, valid, agrees", REFERENCES)
def test_the_testers_terms_by_hand(found, valid, agrees):
    assert terms.valid_score(found) == valid
    assert terms.agree_score(found) == agrees
    assert terms.tester_reward(found) == pytest.approx(0.2 * valid + 0.8 * agrees)
    assert terms.tester_reward(None) == terms.tester_reward(()) == 0


@pytest.mark.parametrize(
    "passed",
    [(1,), (0.5, 1), (1, 0.5), (0.2, 0.4, 0.6), (0.8, 0, 0.3)],
)
def test_the_margins_of_the_turns_sum_up_to_the_last_share(passed):
    before = (0.0, *passed[:-1])
    margins = [terms.margin(one, two) for one, two in zip(before, passed, strict=True)]
    assert sum(margins) == pytest.approx(passed[-1])


def test_a_margin_and_the_share_itself_give_a_group_the_same_advantages():
    shares = [0.2, 0.6, 0.6, 1.0]
    margins = [terms.margin(0.4, share) for share in shares]
    assert AgentTurn()._compared(margins) == pytest.approx(AgentTurn()._compared(shares))


# Turns ------------------------------------------------------------


def code(*lines):
    return "So:\n**Code:**\n```python\n" + "\n".join(lines) + "\n```"


def test_of(given, wanted):
    return f"I think\n**Test Input:**\n{given}\n**Test Output:** {wanted}"


test_of.__test__ = False
RIGHT = code("a, b = int(input()), int(input())", "print(a + b)")
HALF = code("print(abs(int(input()) + int(input())))")  # right where the sum is not negative


def started(**settings):
    """The first problem: print the sum of two numbers; two of its five sums are negative."""
    task = CoderTester(**settings)
    state = task.reset(task.items("train")[0], RNG)
    assert [case.output for case in state.item.tests] == ["3", "0", "-2", "1000001", "-15"]
    return task, state


def test_a_program_that_passes_the_test_ends_the_episode():
    task, state = started()
    assert list(joint_observations(task, state)) == ["coder", "tester"]
    outcome = task.step(state, {"coder": RIGHT, "tester": test_of("4\n5", "9")}, RNG)
    assert outcome.done and outcome.reward == 1
    assert outcome.local_rewards == pytest.approx({"coder": 1, "tester": 1})
    assert task.metrics(outcome.state) == {"solved": 1, "passed": 1, "rounds": 1, "valid": 1}


def test_a_team_that_disagrees_goes_on_and_is_paid_what_each_turn_adds():
    task, state = started(turns=2)
    first = task.step(state, {"coder": HALF, "tester": test_of("-4\n-5", "-9")}, RNG)
    assert not first.done and first.reward == pytest.approx(0.6)
    assert first.local_rewards == pytest.approx({"coder": 0.2 + 0.8 * 0.6, "tester": 1})
    shown = joint_observations(task, first.state)
    assert "Expected output:\n-9" in shown["coder"].text
    assert "Execution output:\n9" in shown["coder"].text and "abs(" in shown["coder"].text
    assert "abs(" not in shown["tester"].text and "Execution output:\n9" in shown["tester"].text
    assert shown["tester"].fresh and shown["tester"].made_from == ((0, "coder"), (0, "tester"))
    last = task.step(first.state, {"coder": RIGHT, "tester": test_of("1\n1", "3")}, RNG)
    assert last.done and last.reward == pytest.approx(0.4)
    assert last.local_rewards == pytest.approx({"coder": 1, "tester": 0.2})


def test_in_sequence_the_tester_sees_the_new_program():
    task, state = started(order="sequential", turns=2)
    assert task.horizon == 4 and list(joint_observations(task, state)) == ["coder"]
    middle = task.step(state, {"coder": RIGHT}, RNG)
    assert middle.reward == 1 and not middle.done and middle.local_rewards == {"coder": 1}
    seen = joint_observations(task, middle.state)
    assert list(seen) == ["tester"] and "print(a + b)" in seen["tester"].text
    assert seen["tester"].made_from == ((0, "coder"),)
    outcome = task.step(middle.state, {"tester": test_of("4\n5", "8")}, RNG)
    assert outcome.reward == 0 and not outcome.done and outcome.state.turn == 1
    again = joint_observations(task, outcome.state)
    assert again["coder"].made_from == ((0, "coder"), (1, "tester"))


def test_a_single_coder_refines_its_program_until_it_stays_as_it_is():
    task, state = started(variant="single")
    assert (task.agents, task.horizon) == (("coder",), 4)
    first = task.step(state, {"coder": HALF}, RNG)
    assert not first.done and "Expected" not in task.observe(first.state, "coder").text
    second = task.step(first.state, {"coder": RIGHT}, RNG)
    assert not second.done and second.reward == pytest.approx(0.4)
    assert task.step(second.state, {"coder": RIGHT}, RNG).done


def test_outcome_rewards_are_success_and_a_valid_format():
    task, state = started(rewards="outcome")
    outcome = task.step(state, {"coder": HALF, "tester": "none"}, RNG)
    assert outcome.reward == 0 and outcome.local_rewards == {"coder": 1, "tester": 0}
    outcome = task.step(outcome.state, {"coder": RIGHT, "tester": test_of("1\n1", "7")}, RNG)
    assert outcome.reward == 1 and outcome.local_rewards == {"coder": 1, "tester": 1}


def test_an_endless_program_costs_the_time_of_all_golden_tests_once():
    task, state = started(seconds=0.5)
    trials = try_golden(state.item, "while True: pass", task.seconds)
    assert [trial.error for trial in trials] == ["timeout"] * 5
    assert [bool(trial.printed) for trial in trials] == [True] + [False] * 4  # four never ran
    assert terms.coder_reward(trials) == pytest.approx(0.1)


PROGRAM = problems.ProgrammingProblem(name="p", question="?", tests=(problems.Case("1", "1"),))
FUNCTION = problems.ProgrammingProblem(
    name="f",
    question="?",
    entry_point="double",
    asserts="assert double(2) == 4\nassert double([1]) == [1, 1]\nassert double('') == ''",
)
TESTS = {
    "**Test Input:**\n1 2\n3\n**Test Output:**\n6": ("1 2\n3", "6"),
    "why\n**Test Input:** 1\n**Test Output:** 2\n": ("1", "2"),
    "**Test Input:**\n```\n1\n2\n```\n**Test Output:**\n```text\n3\n```": ("1\n2", "3"),
    "": None,
    "**Test Input:**\n1": None,
    "**Test Input:**\n1\n**Test Output:**\n": None,
    "**Test Output:**\n1\n**Test Input:**\n1": None,
    "**Test Input:**\n1\n**Test Output:**\n1\n**Test Output:**\n2": None,
    "**Test Input:**1\n**Test Input:**2\n**Test Output:**3": None,
    "test_input: 1\ntest_output: 2": None,
    "**Test Input:**\n**Test Output:**\n1": None,
    "**Test Input:**\n1\n**Test Output:**\n" + "1" * 30_000: None,
}


@pytest.mark.parametrize("text, found", TESTS.items(), ids=range(len(TESTS)))
def test_a_test_is_the_one_input_and_the_one_output_after_it(text, found):
    case = read_test(PROGRAM, text)
    assert case == (None if found is None else problems.Case(*found))


def test_a_functions_test_is_its_arguments_and_its_value():
    assert read_test(FUNCTION, test_of("[1, 2], 'a'", "(3,)")) is not None
    assert read_test(FUNCTION, test_of("x", "3")) is None
    assert read_test(FUNCTION, test_of("1", "__import__('os')")) is None


@pytest.mark.parametrize(
    "given, returned", [("0x" + "f" * 5000, "1"), ("1", "[0x" + "f" * 5000 + "]")]
)
def test_a_test_whose_number_python_reads_and_cannot_print_has_no_format(given, returned):
    assert read_test(FUNCTION, test_of(given, returned)) is None
    program = "def double(x):\n    return x * 2"
    assert try_test(FUNCTION, program, problems.Case("'ab'", '"abab"'), 5).passed
    assert try_test(FUNCTION, program, problems.Case("2", "5"), 5) == CaseResult(False, None, "4")
    golden = try_golden(FUNCTION, "def double(x):\n    return x + x[:]", 5)
    assert [trial.passed for trial in golden] == [False, True, True]
    assert [trial.error for trial in golden] == ["exception", None, None]


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        ("4", "4.0"),
        ("True", "1"),
        ("-0.0", "0"),
        ("{'b': 2, 'a': 1}", "{'a': 1, 'b': 2}"),
        (
            "{'pear', 'apple', 'fig', 'plum', 'kiwi', 'date'}",
            "{'date', 'kiwi', 'plum', 'fig', 'apple', 'pear'}",
        ),
        ("(1, 2)", "[1, 2]"),
        ("'a  b'", "'a b'"),
        ("'1'", "1"),
        ("float('nan')", "0.0"),
        ("[0.1 + 0.2]", "[0.3]"),
        ("print('debug', end='') or [1]", "[1]"),
        ("None", "None"),
        ("object()", "None"),
    ],
)
def test_a_testers_value_equals_a_functions_where_pythons_assert_says_so(returned, wanted):
    program = f"def double(x):\n    return {returned}"
    assert try_test(FUNCTION, program, problems.Case("1", wanted), 20).passed == (
        eval(returned) == eval(wanted)
    )


# Problems ------------------------------------------------------------


@pytest.mark.slow
def test_packaged_solutions_pass_their_tests():
    task = CoderTester()
    items = [*task.items("train"), *task.items("test")]
    assert len(items) == 24
    for item in items:
        assert all(trial.passed for trial in try_golden(item, item.solutions[0], 10))


def served(monkeypatch, rows, tested=()):
    """The hub's rows, those `tested` where there are two splits, and what was asked for."""
    asked = []

    def load_dataset(*names, split):
        asked.append((*names, split))
        return tested if tested and split == "test" else rows

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return asked


def test_humaneval_is_functions_with_asserts(monkeypatch):
    row = {
        "task_id": "HumanEval/0",
        "prompt": "def double(x):\n    '''Double.'''\n",
        "entry_point": "double",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(double):\n    assert double(1) == 2\n    assert double(0) == 0\n",
    }
    asked = served(monkeypatch, [row | {"task_id": f"HumanEval/{k}"} for k in range(5)])
    task = CoderTester(data="humaneval")
    assert asked == [("openai/openai_humaneval", "test")]
    assert (len(task.items("train")), len(task.items("test"))) == (4, 1)
    item = task.items("train")[0]
    assert [trial.passed for trial in try_golden(item, item.solutions[0], 5)] == [True, True]
    prompt = task.observe(task.reset(item, RNG), "tester").text
    assert "between the brackets of a call of double" in prompt


def test_mbpp_gets_the_signature_that_its_tests_call(monkeypatch):
    row = {
        "task_id": 7,
        "prompt": "Add one.",
        "code": "def more(n):\n    return n + 1",
        "test_imports": [],
        "test_list": ["assert more(1) == 2", "assert more(-1) == 0"],
    }
    other = [row | {"prompt": "Add 1 to it."}]
    asked = served(monkeypatch, [row | {"task_id": k} for k in range(5)], other)
    assert "Add 1 to it." in CoderTester(data="mbpp").items("test")[0].question
    assert [split for *_, split in asked] == ["train", "test"]
    item = CoderTester(data="mbpp").items("train")[0]
    assert item.question.startswith("def more(n):") and "Add one." in item.question
    assert [trial.passed for trial in try_golden(item, item.solutions[0], 5)] == [True, True]


def apps(number, difficulty="introductory", **known):
    known = {"inputs": ["1\n", ["2", "3"]], "outputs": ["1\n", ["5"]]} | known
    return {
        "problem_id": number,
        "question": f"Sum up, {number}.",
        "difficulty": difficulty,
        "solutions": json.dumps(["one", "two", "three", "four"]),
        "input_output": json.dumps(known),
        "url": "",
        "starter_code": "",
    }


def test_apps_are_the_introductory_programs(monkeypatch):
    rows = [*(apps(k) for k in range(5)), apps(5, fn_name="f"), apps(6, "interview")]
    rows += [apps(7) | {"input_output": ""}]
    asked = served(monkeypatch, rows, [apps(8, "interview"), apps(9)])
    task = CoderTester(data="apps")
    assert asked == [("metr-evals/apps", "train"), ("metr-evals/apps", "test")]
    items = task.items("train")
    assert [item.name for item in items] == [f"APPS/{k}" for k in range(5)]
    assert [item.name for item in task.items("test")] == ["APPS/8", "APPS/9"], "of any difficulty"
    assert items[0].tests == (problems.Case("1\n", "1\n"), problems.Case("2\n3", "5"))
    assert items[0].solutions == ("one", "two", "three")


def contest(number):
    pair = {"input": ["1\n"], "output": ["2\n"]}
    return {
        "name": f"{number}_A",
        "description": f"Problem {number}",
        "public_tests": pair,
        "private_tests": {"input": ["3\n", "4\n"], "output": ["4\n", "5\n"]},
        "generated_tests": pair,
        "solutions": {"language": [2, 3, 1, 3], "solution": ["c++", "p3", "p2", "q3"]},
    }


def test_codecontests_are_their_tests_in_order_and_solutions_in_python_3(monkeypatch):
    asked = served(monkeypatch, [contest(k) for k in range(5)], [contest(7)])
    task = CoderTester(data="codecontests", golden=2)
    assert asked == [("deepmind/code_contests", "train"), ("deepmind/code_contests", "test")]
    assert len(task.items("train")) == 5 and len(task.items("test")) == 1
    item = task.items("train")[0]
    assert item.tests == (problems.Case("1\n", "2\n"), problems.Case("3\n", "4\n"))
    assert item.solutions == ("p3", "q3")


def live(number, kind="stdin"):
    case = {"input": "1\n", "output": "2\n", "testtype": kind}
    packed = zlib.compress(pickle.dumps(json.dumps([case])))
    return {
        "question_id": str(number),
        "question_content": f"Live {number}",
        "starter_code": "",
        "public_test_cases": json.dumps([case]),
        "private_test_cases": base64.b64encode(packed).decode(),
    }


def test_livecodebench_are_programs_without_solutions_whose_private_tests_are_unpacked(monkeypatch):
    served(monkeypatch, [*(live(k) for k in range(5)), live(6, "functional")])
    task = CoderTester(test_data="livecodebench")
    assert len(task.items("train")) == 24, "of the packaged ones"
    items = task.items("test")
    assert len(items) == 5 and len(items[0].tests) == 2 and items[0].solutions == ()
    state = task.reset(items[0], RNG)
    outcome = task.step(state, {"coder": "", "tester": test_of("1", "2")}, RNG)
    assert outcome.local_rewards == {"coder": 0, "tester": 0} and outcome.state.valid == 1


@pytest.mark.parametrize("data", ["livecodebench", "mbpp_test"])
def test_a_test_split_is_not_trained_on(data):
    told = f"^task.data: '{data}' is a test split; set task.test_data to it, and task.data to what"
    with pytest.raises(ConfigError, match=told):
        CoderTester(data=data)


def test_a_pickle_that_would_run_something_is_refused():
    packed = zlib.compress(pickle.dumps(print))
    with pytest.raises(ConfigError, match=r"private tests of x are unreadable \(builtins.print"):
        private_cases(base64.b64encode(packed).decode(), "x")


def test_a_test_set_of_its_own_leaves_no_question_in_both_splits(monkeypatch):
    served(monkeypatch, [contest(k) for k in range(5)])
    monkeypatch.setitem(HUB_SETS, "apps_test", HUB_SETS["codecontests_test"])
    with pytest.raises(ConfigError, match=r"^task\.data: codecontests leaves no problem to train"):
        CoderTester(data="codecontests", test_data="apps_test")


@pytest.mark.parametrize(
    "row, message",
    [
        ({"inputs": [], "outputs": []}, "line 1 of .*mine.jsonl: question: field required"),
        ({"question": "?", "inputs": ["1"], "outputs": []}, "1 'inputs' and 0 'outputs'"),
        ({"question": "?", "entry_point": "f", "asserts": "x ="}, "tests: not valid Python"),
        ({"question": "?", "entry_point": "f", "asserts": "x = 1"}, "no assert"),
    ],
)
def test_a_row_that_is_no_problem_is_named(tmp_path, row, message):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(ConfigError, match=f"^task.data: .*{message}"):
        CoderTester(data=str(path))


@pytest.mark.parametrize("settings", [{"order": "sequential"}, {"variant": "single"}])
def test_the_contract_holds_for_legal_play(settings):
    task = CoderTester(turns=1, golden=1, **settings)
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)
