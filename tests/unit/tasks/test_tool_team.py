"""What the games share, on Plan-Path and Sudoku: turns, programs, hostile answers, variants."""

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.tasks.answers import code_block, final_answer, plain_value
from colearn.tasks.generated import belongs_to_test
from colearn.tasks.plan_path import PlanPath
from colearn.tasks.sokoban import Sokoban
from colearn.tasks.sudoku import Sudoku

RNG = np.random.default_rng(0)


def program(*lines):
    return "I think\n```python\n" + "\n".join(lines) + "\n```\nas asked"


def solving(task, agent):
    state = task.reset(task.items("train")[0], RNG)
    answer = task.written(state.item, task.solution(state.item, state.world))
    said = program(f"print({answer!r})") if agent == "tool" else f"so:\n#### {answer}"
    return state, said


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_in_sequential_play_the_planner_sees_the_tool_of_its_own_turn(game):
    task = game(train=2, test=1)
    assert (task.agents, task.horizon) == (("tool", "plan"), 8)
    state, said = solving(task, "tool")
    assert list(joint_observations(task, state)) == ["tool"]
    outcome = task.step(state, {"tool": said}, RNG)
    assert not outcome.done and outcome.reward == 1  # what the proposal would earn
    assert outcome.local_rewards.keys() == {"tool"}
    assert outcome.state.world == state.world and outcome.state.turn == 0
    seen = joint_observations(task, outcome.state)
    assert list(seen) == ["plan"]
    shown = seen["plan"].text
    assert seen["plan"].fresh
    assert said.split("\n")[2] in shown  # the program, not what stood around it
    assert "as asked" not in shown
    assert task.written(state.item, outcome.state.tool.answer) in shown


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_the_planners_decision_ends_the_turn_and_the_episode_where_it_solves(game):
    task = game(train=2, test=1)
    state = task.reset(task.items("train")[0], RNG)
    state = task.step(state, {"tool": "no idea"}, RNG).state
    outcome = task.step(state, {"plan": solving(task, "plan")[1]}, RNG)
    assert outcome.done and outcome.reward == 1 and outcome.state.turn == 1
    assert task.metrics(outcome.state) == {"solved": 1, "progress": 1, "rounds": 1, "valid": 0.5}


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
@pytest.mark.parametrize("rewards", ["shaped", "outcome"])
def test_the_two_steps_of_a_turn_pay_the_teams_reward_of_what_was_decided(game, rewards):
    task = game(rewards=rewards, train=20, test=1, prompt="compact")
    rng = np.random.default_rng(3)
    shares = set()
    for item in task.items("train"):
        start = task.reset(item, rng)
        said = {agent: task.legal_action(start, agent, rng) for agent in task.agents}
        middle = task.step(start, {"tool": said["tool"]}, rng)
        last = task.step(middle.state, {"plan": said["plan"]}, rng)
        alone = task.step(
            task.step(start, {"tool": "?"}, rng).state, {"plan": said["plan"]}, rng
        ).reward
        assert middle.reward + last.reward == pytest.approx(alone)
        assert task.step(middle.state, {"plan": said["tool"]}, rng).reward == 0
        shares.add(middle.reward)
    assert len(shares) > 1 or game is not PlanPath or rewards == "outcome"


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_in_parallel_play_both_answer_and_the_planner_sees_the_tool_a_turn_later(game):
    task = game(order="parallel", train=2, test=1)
    assert task.horizon == 4
    state, said = solving(task, "tool")
    before = joint_observations(task, state)
    assert list(before) == ["tool", "plan"]
    outcome = task.step(state, {"tool": said, "plan": "no idea"}, RNG)
    assert outcome.local_rewards.keys() == {"tool", "plan"}
    answer = task.written(state.item, outcome.state.tool.answer)
    assert answer not in before["plan"].text
    assert answer in joint_observations(task, outcome.state)["plan"].text


def test_a_prompt_says_which_answers_it_was_made_from():
    sequential = PlanPath(train=2, test=1)
    state = sequential.reset(sequential.items("train")[0], RNG)
    sources = []
    for agent in ("tool", "plan", "tool", "plan"):
        sources.append(sequential.observe(state, agent).made_from)
        state = sequential.step(state, {agent: "?"}, RNG).state
    tool, first, again, second = sources
    assert (tool, first) == ((), ((0, "tool"),))
    assert again == ((1, "plan"), (0, "tool"))
    assert second == ((1, "plan"), (2, "tool"))
    parallel = PlanPath(train=2, test=1, order="parallel")
    state = parallel.reset(parallel.items("train")[0], RNG)
    state = parallel.step(state, {"tool": "?", "plan": "?"}, RNG).state
    assert parallel.observe(state, "plan").made_from == ((0, "plan"), (0, "tool"))


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_a_single_agent_plays_without_a_word_of_the_tool(game):
    task = game(variant="single", train=2, test=1)
    assert (task.agents, task.horizon) == (("plan",), 4)
    state, said = solving(task, "plan")
    shown = task.observe(state, "plan").text
    assert "Tool" not in shown and "code" not in shown
    outcome = task.step(state, {"plan": said}, RNG)
    assert outcome.done and outcome.reward == 1


def test_the_last_marked_line_is_the_final_answer():
    assert final_answer("#### [U]\nno:\n####\n[D]\n") == "[D]"
    assert final_answer("a\n####[U,\nD]") == "[U,\nD]"
    assert final_answer("x #### [U]") is None


def test_a_code_block_is_the_only_one_or_none():
    assert code_block("a\n```python\nx\n```\nb") == "x\n"
    assert code_block("a\r\n```python\r\nx\r\n```\r\n") == "x\n"
    assert code_block("```python\nx\n```\n```python\ny\n```") is None
    assert code_block("a ```python x```") is None


def test_a_plain_value_runs_nothing():
    assert plain_value(" [1, 2]\n") == [1, 2]
    assert [plain_value(text) for text in ("f()", "1 +", "[" * 9999, "1" * 30_000)] == [None] * 4


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_outcome_rewards_are_success_for_the_team_and_format_for_each(game):
    task = game(rewards="outcome", order="parallel", train=2, test=1)
    state, proposal = solving(task, "tool")
    poor = {
        "tool": proposal,
        "plan": "#### "
        + task.written(state.item, task.random_answer(state.item, state.world, RNG)),
    }
    outcome = task.step(state, poor, RNG)
    assert outcome.local_rewards == {"tool": 1, "plan": 1}
    assert outcome.reward == float(outcome.done)
    outcome = task.step(state, {"tool": "?", "plan": solving(task, "plan")[1]}, RNG)
    assert outcome.local_rewards == {"tool": 0, "plan": 1} and outcome.reward == 1


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_a_compact_prompt_is_words_between_single_spaces_and_answers_are_bare(game):
    task = game(prompt="compact", train=2, test=1)
    state = task.reset(task.items("train")[0], RNG)
    shown = task.observe(state, "tool").text
    assert shown.startswith("tool") and len(shown.split()) < 50 and "  " not in shown
    said = task.reference_actions(state)["tool"]
    state = task.step(state, {"tool": said}, RNG).state
    assert task.observe(state, "plan").text.endswith(f"tool {said}")
    assert task.step(state, {"plan": said}, RNG).done


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_a_picture_shows_the_world(game):
    task = game(train=2, test=1, variant="single")
    state, said = solving(task, "plan")
    before = task.picture(state)
    after = task.picture(task.step(state, {"plan": said}, RNG).state)
    assert before.plain() != after.plain() and before.panels[0].columns == task.size
    assert task.render(state)


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
@pytest.mark.parametrize(("prompt", "order"), [("compact", "sequential"), ("full", "parallel")])
def test_the_contract_holds_for_legal_play(game, prompt, order):
    task = game(prompt=prompt, order=order, turns=2, train=8, test=4)
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_train_and_test_instances_are_different_whatever_the_seed(game):
    tasks = [game(seed=seed, train=60, test=20) for seed in (0, 1)]
    train, test = (
        {str(item) for task in tasks for item in task.items(split)} for split in ("train", "test")
    )
    assert len(train) > 60 and len(test) >= 20 and not train & test


@pytest.mark.parametrize("game", [Sudoku, PlanPath, Sokoban])
def test_fresh_instances_are_as_many_as_asked_for_and_none_of_the_tests(game):
    """Only those that are read are drawn: a million at once would take hours."""
    task = game(train=10**6, test=5, fresh=True)
    items = task.items("train")
    assert len(items) == 10**6
    instances = [str(item) for item in items[:20]]
    assert len(set(instances)) == 20
    assert [str(items[k]) for k in range(20)] == instances
    assert not any(belongs_to_test(instance) for instance in instances)
    assert all(belongs_to_test(str(item)) for item in task.items("test"))
    other = game(train=10**6, test=5, fresh=True, seed=1).items("train")
    assert [str(item) for item in other[:20]] != instances


def test_a_place_beyond_the_last_fresh_instance_is_none():
    items = PlanPath(train=3, test=1, fresh=True).items("train")
    assert len(list(items)) == 3
    assert str(items[-1]) == str(items[2])
    with pytest.raises(IndexError):
        items[3]


def test_a_task_of_fresh_instances_keeps_to_the_contract():
    check_task(PlanPath(train=30, test=3, fresh=True, prompt="compact"))
