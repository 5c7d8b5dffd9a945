"""CoopHumanEval: rewards by hand, hostile answers, data, prompts and feedback.

Tests that run programs are skipped where no sandbox works. The published data set is read from
COLEARN_COOP_HUMANEVAL or from ../shared/data, where it is present.
"""

import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.programs.sandbox.mechanism import works
from colearn.tasks.coop_humaneval import CoopHumanEval, parse
from colearn.tasks.coop_humaneval.parse import read_answer
from colearn.tasks.coop_humaneval.reward import Findings, raw_reward
from colearn.tasks.coop_humaneval.use import Use, find_use
from colearn.tasks.wrappers import Single

PUBLISHED = Path(
    os.environ.get("COLEARN_COOP_HUMANEVAL")
    or Path(__file__).parents[3] / "shared/data/coop_humaneval/coop_humaneval.json"
)
executes = pytest.mark.skipif(not works(), reason="no sandbox works here")
SHARE = 2
"""The packaged problem `fair_share(amounts, people)`, whose four tests are

[10], 4 -> [3, 3, 2, 2];  [1, 1], 3 -> [1, 1, 0];  [], 2 -> [0, 0];  [9], 3 -> [3, 3, 3]
"""
AUX = "def aux(amounts, people):\n    return divmod(sum(amounts), people)\n"
MAIN = (
    "def fair_share(amounts, people):\n"
    "    share, rest = aux(amounts, people)\n"
    "    return [share + (k < rest) for k in range(people)]\n"
)
ALONE = (
    "def fair_share(amounts, people):\n"
    "    share, rest = divmod(sum(amounts), people)\n"
    "    return [share + (k < rest) for k in range(people)]\n"
)
ZEROS = "def fair_share(amounts, people):\n    return [0] * people\n"


def play(task, aux, main):
    rng = np.random.default_rng(0)
    state = task.reset(task.items("train")[SHARE], rng)
    return task.step(state, {"aux": aux, "main": main}, rng)


def analysed(source):
    return find_use(read_answer(source, "f").function)


def measured(**changed):
    facts = {
        "program": "",
        "aux_defined": True,
        "main_defined": True,
        "syntax_error": "",
        "use": Use(calls=True),
        "passed": (True, True, True, True),
        "message": "",
    }
    return Findings(**facts | changed)


@executes
@pytest.mark.parametrize(
    "aux, main, reward",
    [
        (AUX, MAIN, 4.0),  # 0.4 + 0.6 + 0.5 + 4/4 + 0.5 + 1
        (AUX, ALONE, 2.5),  # 0.4 + 0.6 + 0.5 + 4/4, aux not called
        ("", ALONE, 2.1),  # 0.6 + 0.5 + 4/4
        ("", MAIN, 1.1),  # 0.6 + 0.5, no test passes: aux is unknown
        (AUX, "", 0.4),  # no main function
        ("", "", 0.0),
        (AUX, ZEROS, 1.75),  # 0.4 + 0.6 + 0.5 + 1/4
        (AUX, ZEROS.replace("return", "aux(1, 2); return"), 1.5),  # aux(1, 2) raises: no test
        # 0.4 + 0.6 + 0.5 + 1/4 + 0.5 + 1 - 0.5
        (AUX, ZEROS.replace("return", "aux([1], 2); return"), 2.75),
        (AUX, ZEROS.replace("return", "x = aux([1], 2); return"), 2.75),
        # 0.4 + 0.6 + 0.5 + 4/4 + 0.5, the main function only wraps
        (ALONE.replace("fair_share", "aux"), "def fair_share(a, n):\n    return aux(a, n)", 3.0),
        (AUX, MAIN.replace("aux(amounts, people)", "aux(amounts, people"), 1.0),  # 0.4 + 0.6
        (AUX.replace(":", "", 1), MAIN, 1.0),  # 0.4 + 0.6, as far as can be told
        (AUX, MAIN.replace("return [", "["), 0.4),  # the main function returns nothing
        (AUX, MAIN.replace("<", "<="), 1.5),  # 0.4 + 0.6 + 0.5: one too many each time
    ],
)
def test_the_reward_of_a_turn_by_hand(aux, main, reward):
    assert play(CoopHumanEval(reward_shift=0), aux, main).reward == pytest.approx(reward)


@pytest.mark.parametrize(
    "changed, paper, comlrl",
    [
        ({}, 4.0, 4.0),
        ({"passed": (True, False)}, 3.5, 3.5),  # 0.4 + 0.6 + 0.5 + 1/2 + 0.5 + 1
        ({"passed": (False, False)}, 1.5, 1.5),  # no bonus without a test
        ({"use": Use()}, 2.5, 2.5),
        ({"use": Use(calls=True, wrapper=True)}, 3.0, 3.0),
        ({"use": Use(calls=True, ignored=True)}, 3.5, 4.0),  # comlrl never deducts
        ({"aux_defined": False}, 2.1, 2.1),  # 0.6 + 0.5 + 1, what is called is not the agent's
        ({"syntax_error": "aux, line 1", "passed": ()}, 1.0, 1.0),
        ({"main_defined": False, "passed": ()}, 0.4, 0.4),
        ({"main_defined": False, "aux_defined": False, "passed": ()}, 0.0, 0.0),
    ],
)
def test_each_level_adds_its_weight_and_the_first_that_fails_ends_the_count(changed, paper, comlrl):
    assert raw_reward(measured(**changed), "paper") == pytest.approx(paper)
    assert raw_reward(measured(**changed), "comlrl") == pytest.approx(comlrl)


@pytest.mark.parametrize(
    "changed, reward",
    [
        ({}, 2.5),  # 0.4 + 0.6 + 0.5 + 4/4, and nothing for the call
        ({"use": Use()}, 2.5),
        ({"use": Use(calls=True, ignored=True)}, 2.5),  # nothing is deducted either
        ({"passed": (True, False)}, 2.0),
        ({"main_defined": False, "passed": ()}, 0.4),
    ],
)
@pytest.mark.parametrize("variant", ["paper", "comlrl"])
def test_alone_the_count_ends_with_the_tests(variant, changed, reward):
    assert raw_reward(measured(**changed), variant, cooperation=False) == pytest.approx(reward)


@executes
@pytest.mark.parametrize("variant", ["paper", "comlrl"])
def test_a_single_model_is_not_paid_for_cooperation_and_done_when_all_tests_pass(variant):
    team = CoopHumanEval(variant=variant, reward_shift=0)
    task = Single(team)
    rng = np.random.default_rng(0)
    state = task.reset(team.items("train")[SHARE], rng)
    apart = task.step(state, {"solo": f"### aux\n{AUX}\n### main\n{ALONE}"}, rng)
    used = task.step(state, {"solo": f"### aux\n{AUX}\n### main\n{MAIN}"}, rng)
    assert (apart.reward, apart.done) == (used.reward, used.done) == (pytest.approx(2.5), True)
    assert task.global_info(used.state).endswith("2.50 / 2.50.")
    assert task.reward_range == (0, 2.5)
    assert team.reward_range == (0, 4)  # the team's own task is as it was
    assert play(team, AUX, ALONE).reward == 2.5 and not play(team, AUX, ALONE).done


@executes
@pytest.mark.parametrize(
    "main, reward",
    [
        ("def fair_share(amounts, people):\n    while True: pass\n    return []", 1.5),
        (ZEROS.replace("[0] * people", "object()"), 1.5),
        ("from __future__ import nonsense\n" + ZEROS, 1.5),
        ("import no_such_module\n" + ZEROS, 1.5),
        (ZEROS.replace("fair_share", "fairshare"), 0.4),
        (ZEROS.replace("def", "async def"), 0.4),
        ("class fair_share:\n    def fair_share(self):\n        return 1", 0.4),
        ("fair_share = lambda amounts, people: [0] * people", 0.4),
        (ZEROS + "\x00", 1.0),
        (ZEROS.replace("[0]", "[" * 500 + "]" * 500), 1.0),
        (ZEROS + "# " + "x" * 10_000, 1.0),
        (ZEROS.replace("people", "l\u00e4nge"), 1.75),
        (f"```python\n{ZEROS}```", 1.75),
        (f"Sure, here's the code:\n\n```\n{ZEROS}```\nDon't call it with 0 people.", 1.75),
        (f"Here's the function.\n\n{ZEROS}\nIt doesn't use aux (yet).\nDone!", 1.75),
        (ZEROS + "\nprint(fair_share([1], 0))\nassert False\nraise ValueError", 1.75),
        (ZEROS + "\nif __name__ == '__main__':\n    raise ValueError", 1.75),
        ("  " + ZEROS.replace("\n", "\n  "), 1.75),
    ],
)
def test_a_hostile_or_untidy_answer_earns_a_defined_reward(main, reward):
    # 0.4 + 0.6 + 0.5 without a passed test, 1/4 more with the one that ZEROS passes
    task = CoopHumanEval(reward_shift=0, seconds=3 if "while True" in main else 600)
    assert play(task, AUX, main).reward == pytest.approx(reward)


@executes
def test_the_main_agent_cannot_put_its_own_aux_in_the_others_place():
    task = CoopHumanEval(reward_shift=0)
    wrong = AUX.replace("divmod(sum(amounts), people)", "(9, 9)")
    for own in (AUX, "aux = lambda a, n: divmod(sum(a), n)\n", "x = 1; aux = divmod\n"):
        outcome = play(task, wrong, own + MAIN)
        assert outcome.reward == pytest.approx(1.5) and "(9, 9)" in task.render(outcome.state)
        assert "divmod" not in task.render(outcome.state)


@executes
def test_a_helper_of_the_answer_stays_in_paper_and_goes_in_comlrl():
    main = "import math\n\ndef zero():\n    return math.floor(0.5)\n\n" + ZEROS.replace(
        "[0]", "[zero()]"
    )
    # 0.4 + 0.6 + 0.5 + 1/4, and without the helper no test passes
    assert play(CoopHumanEval(reward_shift=0), AUX, main).reward == pytest.approx(1.75)
    comlrl = CoopHumanEval(reward_shift=0, variant="comlrl")
    assert play(comlrl, AUX, main).reward == pytest.approx(1.5)


@pytest.mark.parametrize(
    "source, use",
    [
        ("def f(n):\n    return n", Use()),
        ("def f(n):\n    return aux(n)", Use(calls=True, wrapper=True)),
        ("def f(n):\n    'Text.'\n    return 1 + aux(n)", Use(calls=True, wrapper=True)),
        ("def f(n):\n    v = aux(n)\n    return v", Use(calls=True, wrapper=True)),
        ("def f(n):\n    v = aux(n)\n    return v + 1", Use(calls=True)),
        ("def f(n):\n    return n if n else g(aux, n)", Use(calls=True, wrapper=True)),
        ("def f(n):\n    m = n\n    return list(map(aux, m))", Use(calls=True)),
        ("def f(n):\n    aux(n)\n    return n", Use(calls=True, ignored=True)),
        ("def f(n):\n    _ = aux(n)\n    return n", Use(calls=True, ignored=True)),
        ("def f(n):\n    a, b = aux(n)\n    return n", Use(calls=True, ignored=True)),
        ("def f(n):\n    a, b = aux(n)\n    return b", Use(calls=True)),
        ("def f(n):\n    [aux(k) for k in n]\n    return n", Use(calls=True, ignored=True)),
        ("def f(n):\n    v: int = aux(n) + 1\n    return n", Use(calls=True, ignored=True)),
        ("def f(n):\n    n.append(aux(n))\n    return n", Use(calls=True)),
        ("def f(n):\n    n[0] = aux(n)\n    return n", Use(calls=True)),
        ("def f(n):\n    if aux(n): n = 0\n    return n", Use(calls=True)),
        ("def f(n):\n    aux(n)\n    m = aux(n)\n    return m", Use(calls=True)),
        ("def f(n):\n    'call aux(n)' # aux(n)\n    return n", Use()),
        ("def f(n):\n    return n.aux(n)", Use()),
        ("def f(n, aux):\n    v = aux(n)\n    return v + 1", Use()),
        ("def f(n):\n    def aux(m): return m\n    v = aux(n)\n    return v + 1", Use()),
        ("def f(n):\n    aux = len\n    return n + aux(n)", Use()),
    ],
)
def test_the_use_of_aux_is_read_off_the_syntax_tree(source, use):
    assert analysed(source) == use


@executes
def test_an_episode_ends_with_a_solution_that_uses_aux():
    task = CoopHumanEval()
    assert play(task, AUX, MAIN).done
    assert not play(task, AUX, ALONE).done
    assert not play(task, ALONE.replace("fair_share", "aux"), MAIN.replace("aux", "sum")).done
    assert not play(task, AUX, ALONE.replace("share,", "aux([1], 1); share,")).done


@executes
def test_the_reference_earns_the_maximum_on_every_packaged_problem():
    rng = np.random.default_rng(0)
    task = CoopHumanEval()
    for item in (*task.items("train"), *task.items("test")):
        state = task.reset(item, rng)
        outcome = task.step(state, task.reference_actions(state), rng)
        assert (str(item), outcome.reward, outcome.done) == (str(item), 0, True)
        measured = task.metrics(outcome.state)
        assert measured == {"score": 4, "pass": 1, "tests": 1, "syntax": 1, "uses_aux": 1}


def test_packaged_problems_are_twenty_different_ones_with_three_to_six_tests():
    task = CoopHumanEval()
    problems = [*task.items("train"), *task.items("test")]
    assert [len(task.items(split)) for split in ("train", "test")] == [16, 4]
    assert len({problem.entry_point for problem in problems}) == 20
    assert all(3 <= len(problem.asserts) <= 6 for problem in problems)
    assert all(problem.summary and problem.reference for problem in problems)


@executes
@pytest.mark.parametrize(("variant", "prompt"), [("paper", "full"), ("comlrl", "compact")])
def test_every_way_of_playing_keeps_the_contract(variant, prompt):
    task = CoopHumanEval(variant=variant, prompt=prompt, horizon=3)
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)


def test_the_prompts_are_the_papers():
    task = CoopHumanEval()
    state = task.reset(task.items("train")[SHARE], np.random.default_rng(0))
    aux, main = (task.observe(state, agent) for agent in task.agents)
    assert aux.startswith("Create a helper function for this coding problem.\n\nProblem:\ndef fair")
    assert aux.endswith("format:\n\ndef aux(...):\n    # your code here\n    return result")
    assert main.startswith("Solve this coding problem by implementing the required function.")
    assert "- Do NOT redefine the aux() function\n- Implement ONLY the 'fair_share' fun" in main
    assert main.endswith(
        "def fair_share(amounts, people):\n    # your function code here\n    return result"
    )


def test_the_compact_prompt_is_one_line():
    task = CoopHumanEval(prompt="compact")
    state = task.reset(task.items("train")[SHARE], np.random.default_rng(0))
    assert task.observe(state, "aux") == (
        "write aux for fair_share(amounts, people) : Split the sum of whole amounts equally among "
        "the people and return each share in a list; the first ones get one more where it does "
        "not divide evenly."
    )


@executes
def test_feedback_shows_diagnostics_and_all_failed_tests():
    task = CoopHumanEval()
    text = task.observe(play(task, AUX, ZEROS).state, "main")
    assert text == (
        "Static and execution diagnostics:\n"
        "- Aux definition: FOUND (Auxiliary function aux defined)\n"
        "- Main definition: FOUND (Main function fair_share defined)\n"
        "- Syntax: OK (Combined code syntax OK)\n"
        "- Cooperation: NONE (fair_share does not call aux)\n"
        "- Tests: 1/4 passed\n"
        "  failed: assert candidate([10], 4) == [3, 3, 2, 2]\n"
        "  failed: assert candidate([1, 1], 3) == [1, 1, 0]\n"
        "  failed: assert candidate([9], 3) == [3, 3, 3]\n\n"
        "Revise your fair_share accordingly. Output ONLY the function code."
    )


@executes
def test_feedback_shows_only_the_tests_that_it_may():
    late = MAIN.replace("share,", "assert amounts != [9]\n    share,", 1)
    one = CoopHumanEval(variant="comlrl")
    text = one.observe(play(one, AUX, late).state, "aux")
    assert "- Tests: 1/1 passed" in text and "[9]" not in text and "AssertionError" not in text
    every = CoopHumanEval()
    assert "first error: AssertionError" in every.observe(play(every, AUX, late).state, "aux")


def test_feedback_names_the_function_with_the_syntax_error():
    task = CoopHumanEval()
    text = task.observe(play(task, AUX, MAIN.replace("rest)", "rest")).state, "aux")
    assert "- Syntax: ERROR (fair_share, line 3, column " in text
    assert "- Tests: NOT RUN" in text and text.endswith("code.") and "Revise your aux" in text


@executes
def test_short_feedback_is_words():
    task = CoopHumanEval(prompt="compact")
    state = play(task, AUX, ZEROS).state
    assert task.observe(state, "aux") == "aux yes main yes syntax yes uses no tests 1 of 4"


def test_an_observation_never_shows_the_others_code():
    task = CoopHumanEval()
    text = task.observe(play(task, AUX.replace("amounts", "secret"), "").state, "main")
    assert "secret" not in text and "MISSING (Main function fair_share" in text


def test_legal_actions_define_their_function_on_one_line():
    task = CoopHumanEval(prompt="compact")
    for item in task.items("train"):
        state = task.reset(item, np.random.default_rng(0))
        for agent, name in (("aux", "aux"), ("main", item.entry_point)):
            said = [task.legal_action(state, agent, np.random.default_rng(s)) for s in range(8)]
            assert said[0] == task.legal_action(state, agent, np.random.default_rng(0))
            assert len(set(said)) > 1
            for text in said:
                answer = read_answer(text, name)
                assert answer.defined and not answer.error


ROW = {
    "prompt": "import math\n\ndef half(x):\n    return x / 2\n\ndef f(n: int, k=2, *rest):\n"
    "    '''Add k.\n\n    >>> f(1)\n    3\n    '''\n",
    "entry_point": "f",
    "test": "def check(candidate):\n"
    "    assert candidate(1) == 3\n    assert candidate(half(2)) == 3\n",
}


def write(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def test_a_file_of_rows_in_the_published_format_gives_a_fifth_to_the_test(tmp_path):
    names = [f"mine/{k}" for k in range(11)]
    rows = [ROW | {"task_id": name, "prompt": f"# {name}\n{ROW['prompt']}"} for name in names]
    task = CoopHumanEval(data=write(tmp_path / "mine.jsonl", rows))
    assert [len(task.items(split)) for split in ("train", "test")] == [9, 2]
    problem = task.items("test")[0]
    assert (problem.params, problem.summary) == ("n: int, k=2, *rest", "Add k.")
    assert sorted(str(item) for split in ("train", "test") for item in task.items(split)) == (
        sorted(names)
    )
    assert problem.preamble == "import math\ndef half(x):\n    return x / 2"
    assert problem.asserts == ("assert candidate(1) == 3", "assert candidate(half(2)) == 3")
    (tmp_path / "mine.json").write_text(json.dumps(rows), encoding="utf-8")
    assert CoopHumanEval(data=str(tmp_path / "mine.json")).items("train") == task.items("train")


@executes
def test_the_prompts_imports_and_helpers_are_part_of_the_program(tmp_path):
    task = CoopHumanEval(data=write(tmp_path / "mine.jsonl", [ROW, ROW]), reward_shift=0)
    rng = np.random.default_rng(0)
    state = task.reset(task.items("test")[0], rng)
    actions = {
        "aux": "def aux(n): return math.floor(half(2 * n))",
        "main": "def f(n, k=2):\n    m = aux(n)\n    return m + k",
    }
    assert task.step(state, actions, rng).reward == pytest.approx(4)


@pytest.mark.parametrize(
    "row, line",
    [
        ({}, "task.data: line 1 of "),
        (ROW | {"test": " "}, "task.data: line 1 of "),
        (ROW | {"task_id": "a", "prompt": "def f(:"}, "task.data: the prompt of a is not Python ("),
        (ROW | {"task_id": "a", "entry_point": "g"}, "task.data: the prompt of a does not define"),
        (
            ROW | {"task_id": "a", "test": "x = 1"},
            "task.data: a: tests: no assert depends on the program",
        ),
    ],
)
def test_a_row_that_is_no_problem_is_named(tmp_path, row, line):
    with pytest.raises(ConfigError) as caught:
        CoopHumanEval(data=write(tmp_path / "mine.jsonl", [row, ROW]))
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_a_problem_without_a_solution_has_no_reference(tmp_path):
    task = CoopHumanEval(data=write(tmp_path / "mine.jsonl", [ROW | {"task_id": "a"}, ROW]))
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    with pytest.raises(ConfigError, match=r"task\.data: a has no solution; add 'aux' and 'main'"):
        task.reference_actions(state)


def test_the_published_problems_are_cut_into_the_papers_slices():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED} is absent")
    rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    task = CoopHumanEval(data=str(PUBLISHED))
    problems = [*task.items("train"), *task.items("test")]
    assert [problem.name for problem in problems] == [row["task_id"] for row in rows]
    assert str(task.items("test")[0]) == "CoopHumanEval/66" and len(problems) == 82
    assert (problems[0].params, len(problems[0].asserts)) == ("n, x, y", 5)


@executes
def test_a_published_problem_is_solved_together():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED} is absent")
    task, rng = CoopHumanEval(data=str(PUBLISHED)), np.random.default_rng(0)
    state = task.reset(task.items("train")[0], rng)
    actions = {
        "aux": "def aux(n):\n    return n > 1 and all(n % k for k in range(2, n))",
        "main": "def x_or_y(n, x, y):\n    prime = aux(n)\n    return x if prime else y",
    }
    assert task.step(state, actions, rng).reward == 0


def test_the_hub_is_read_whole_whatever_its_split_is_called(monkeypatch):
    asked = []

    def load_dataset(name, **settings):
        asked.append((name, settings))
        return {"test": [ROW | {"task_id": k} for k in range(10)]}

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    task = CoopHumanEval(data="hub")
    assert asked == [("OpenMLRL/CoopHumanEval", {})]
    assert [str(item) for item in task.items("test")] == ["8", "9"]


def test_the_hub_without_a_network_names_the_remedy(monkeypatch):
    def load_dataset(name, **settings):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(ConfigError) as caught:
        CoopHumanEval(data="hub")
    assert str(caught.value) == (
        "task.data: cannot read 'OpenMLRL/CoopHumanEval' from the hub; check the network, or give "
        "the path of a .jsonl file (no route to the hub)"
    )


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"variant": "papr"}, "task.variant: unknown value 'papr'; did you mean 'paper'?"),
        ({"sandbox": "bwarp"}, "task.sandbox: unknown value 'bwarp'; did you mean 'bwrap'?"),
        ({"data": "huub"}, "task.data: unknown value 'huub'; did you mean 'hub'? or the path of"),
        ({"data": 3}, "task.data: must be one of packaged, hub, humaneval, mbpp or a path, got 3"),
        ({"data": "/no/such.jsonl"}, "task.data: cannot read /no/such.jsonl ("),
        ({"seconds": 0}, "task.seconds: 0 must be a positive number"),
        ({"reward_shift": float("inf")}, "task.reward_shift: must be a finite number, got inf"),
    ],
)
def test_a_bad_setting_is_one_line_with_the_remedy(settings, line):
    with pytest.raises(ConfigError) as caught:
        CoopHumanEval(**settings)
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_a_machine_without_a_sandbox_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr("colearn.programs.sandbox.mechanism.works", lambda: False)
    with pytest.raises(ConfigError, match=r"^task\.sandbox: 'bwrap' does not work here; install"):
        play(CoopHumanEval(seconds=1), AUX, MAIN)


def test_without_a_sandbox_programs_run_when_the_user_says_so():
    with pytest.warns(UserWarning, match="'unsafe' limits time and memory only"):
        outcome = play(CoopHumanEval(sandbox="unsafe"), AUX, MAIN)
    assert outcome.reward == 0


@pytest.mark.parametrize(
    "text",
    [
        "a=(\n" * 2500,
        "x = '''\n" * 1200,
        "-" * 9_000,
        "@a\n" * 3330,
        "b = f(x, y)\n" * 700 + "a=(\n" * 200,
        "from here we go on\n" * 500,
    ],
)
def test_the_parser_reads_slow_text_a_bounded_number_of_times(text, monkeypatch):
    read, parse_quietly = [], parse.parse_quietly

    def counts(source):
        try:
            tree = parse_quietly(source)
        except SyntaxError as error:
            read.append(len("\n".join(source.split("\n")[: error.lineno or 1])))
            raise
        read.append(len(source))
        return tree

    monkeypatch.setattr(parse, "parse_quietly", counts)
    read_answer(text, "aux")
    assert sum(read) <= 11 * len(text)
