from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from colearn.contract import (
    DecPOMDP,
    joint_observations,
)
from colearn.contract.types import Observation, Outcome
from colearn.registry import load, names
from colearn.tasks.wrappers import Discussion, NoCommunication, Pipeline, Single

WRAPPERS = {name: load("wrappers", name).wrap for name in names("wrappers")}

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Said:
    turn: int = 0
    last: tuple[tuple[str, str], ...] = ()


class Words(DecPOMDP[str, Said]):
    """Reward: the number of letters said; c sits out the second turn; done at 'stop'."""

    agents = ("a", "b", "c")
    horizon = 2
    reward_range = (1, 9)

    def items(self, split):
        return (split,)

    def reset(self, item, rng):
        return Said()

    def observe(self, state, agent):
        return None if agent == "c" and state.turn == 1 else f"turn {state.turn} for {agent}"

    def step(self, state, actions, rng):
        said = tuple(actions.items())
        letters = {agent: float(len(text)) for agent, text in said}
        after = Said(state.turn + 1, said)
        done = "stop" in actions.values()
        reward = sum(letters.values())
        return Outcome(state=after, reward=reward, done=done, local_rewards=letters)

    def metrics(self, state):
        return {"turn": float(state.turn)}

    def global_info(self, state):
        return f"m {state.turn}"

    def privileged_info(self, state):
        return f"hidden {state.turn}"


def seen(task, state):
    return {agent: prompt.text for agent, prompt in joint_observations(task, state).items()}


def test_the_table_names_the_three_ways_of_the_paper_and_the_single_model():
    assert set(WRAPPERS) == {"parallel", "pipeline", "discussion", "single"}


def test_parallel_is_the_task_itself():
    task = Words()
    assert NoCommunication.wrap(task) is task


def test_a_pipeline_lets_one_agent_act_at_a_time_and_shows_it_the_earlier_outputs():
    task = Pipeline(Words())
    assert task.horizon == 6 and task.agents == ("a", "b", "c")
    state = task.reset("x", RNG)
    assert seen(task, state) == {"a": "turn 0 for a"}
    first = task.step(state, {"a": "hi"}, RNG)
    assert (first.reward, first.done, first.local_rewards) == (0, False, {})
    assert seen(task, first.state) == {"b": "turn 0 for b\n\nOutput of a in this turn:\nhi"}
    second = task.step(first.state, {"b": "yo!"}, RNG)
    assert seen(task, second.state) == {
        "c": "turn 0 for c\n\nOutput of a in this turn:\nhi\n\nOutput of b in this turn:\nyo!"
    }
    assert second.state.inner == Said()
    third = task.step(second.state, {"c": "end"}, RNG)
    assert third.reward == 8 and third.local_rewards == {}
    assert third.earned == {(0, "a"): 2, (1, "b"): 3, (2, "c"): 3}
    assert third.state.inner == Said(1, (("a", "hi"), ("b", "yo!"), ("c", "end")))
    assert seen(task, third.state) == {"a": "turn 1 for a"}


def test_a_pipeline_ends_after_the_tasks_own_turns_also_where_fewer_agents_act():
    task = Pipeline(Words())
    state = task.reset("x", RNG)
    for agent in ("a", "b", "c", "a"):
        outcome = task.step(state, {agent: "x"}, RNG)
        assert not outcome.done
        state = outcome.state
    last = task.step(state, {"b": "xx"}, RNG)
    assert last.done and last.reward == 3 and last.state.turn == 2


def test_a_pipeline_ends_where_the_task_does():
    task = Pipeline(Words())
    state = task.reset("x", RNG)
    for agent in ("a", "b"):
        state = task.step(state, {agent: "stop"}, RNG).state
    assert task.step(state, {"c": ""}, RNG).done


def test_the_reward_range_of_a_pipeline_holds_the_unpaid_micro_turns():
    assert Pipeline(Words()).reward_range == (0, 9)
    assert Discussion(Words()).reward_range == (1, 9)


def test_in_a_discussion_everyone_sees_the_others_outputs_one_turn_later():
    task = Discussion(Words())
    assert task.horizon == 2
    state = task.reset("x", RNG)
    assert seen(task, state) == {agent: f"turn 0 for {agent}" for agent in "abc"}
    outcome = task.step(state, {"a": "A!", "b": "B!", "c": "C!"}, RNG)
    assert outcome.reward == 6 and outcome.local_rewards == {"a": 2, "b": 2, "c": 2}
    assert seen(task, outcome.state) == {
        "a": "turn 1 for a\n\nOutput of b in the previous turn:\nB!\n\n"
        "Output of c in the previous turn:\nC!",
        "b": "turn 1 for b\n\nOutput of a in the previous turn:\nA!\n\n"
        "Output of c in the previous turn:\nC!",
    }


class OneTurn(Words):
    horizon = 1


def test_a_task_of_one_turn_is_discussed_over_unpaid_drafts():
    task = Discussion(OneTurn())
    assert (task.horizon, task.reward_range) == (2, (0, 9))
    state = task.reset("x", RNG)
    drafted = task.step(state, {"a": "A!", "b": "B!", "c": "C!"}, RNG)
    assert (drafted.reward, drafted.done) == (0, False)
    assert seen(task, drafted.state)["a"] == (
        "Everyone has written a draft. Write your final answer.\n\n"
        "Output of b in the previous turn:\nB!\n\nOutput of c in the previous turn:\nC!"
    )
    final = task.step(drafted.state, {"a": "A", "b": "B", "c": "C"}, RNG)
    assert final.reward == 3
    assert final.state.inner.last == (("a", "A"), ("b", "B"), ("c", "C"))


def test_a_single_agent_reads_all_observations_and_writes_all_parts():
    task = Single(Words())
    assert task.agents == ("solo",)
    state = task.reset("x", RNG)
    assert seen(task, state) == {
        "solo": "### a\nturn 0 for a\n\n### b\nturn 0 for b\n\n### c\nturn 0 for c\n\n"
        "Write 3 parts, each under a line of its own that names it: ### a, ### b, ### c."
    }
    outcome = task.step(state, {"solo": "one\n### c\nthree\nlines\n### b \ntwo"}, RNG)
    assert outcome.state.inner.last == (("a", "one"), ("b", "two"), ("c", "three\nlines"))
    assert "### c" not in seen(task, outcome.state)["solo"]


def test_a_part_without_its_line_is_empty():
    task = Single(Words())
    outcome = task.step(task.reset("x", RNG), {"solo": "all in one"}, RNG)
    assert outcome.state.inner.last == (("a", "all in one"), ("b", ""), ("c", ""))


def test_a_task_of_one_agent_is_played_as_it_is_by_a_single_one():
    inner = OneAgent()
    task = Single(inner)
    state = task.reset("x", RNG)
    assert task.agents == ("a",)
    assert seen(task, state) == seen(inner, state.inner)
    outcome = task.step(state, {"a": "### b"}, RNG)
    assert (outcome.reward, outcome.local_rewards) == (5, {"a": 5})


class Sourced(Words):
    """Each prompt of the second turn contains what a and b said in the first."""

    def observe(self, state, agent):
        shown = super().observe(state, agent)
        sources = ((0, "a"), (0, "b")) if state.turn else ()
        return None if shown is None else Observation(shown, made_from=sources)


def test_sources_in_a_pipeline_are_micro_turns():
    task = Pipeline(Sourced())
    state, sources = task.reset("x", RNG), []
    for agent in ("a", "b", "c", "a", "b"):
        sources.append(task.observe(state, agent).made_from)
        state = task.step(state, {agent: "word"}, RNG).state
    assert sources[:3] == [(), ((0, "a"),), ((0, "a"), (1, "b"))]
    assert sources[3:] == [((0, "a"), (1, "b")), ((0, "a"), (1, "b"), (3, "a"))]


def test_the_others_outputs_are_sources_of_a_discussion():
    task = Discussion(Sourced())
    state = task.step(task.reset("x", RNG), {"a": "A", "b": "B", "c": "C"}, RNG).state
    assert task.observe(state, "a").made_from == ((0, "a"), (0, "b"), (0, "c"))


class OneAgent(Words):
    agents = ("a",)


class Legal(Words):
    """Has legal actions and shorter items."""

    def horizon_of(self, item):
        return 1

    def legal_action(self, state, agent, rng):
        return f"legal {agent} {state.turn}"


def test_a_single_agents_legal_action_has_all_parts_and_a_pipeline_has_its_own_turns():
    """That all else is forwarded is `tests/contract/test_task_options.py`'s."""
    single, pipeline = Single(Legal()), Pipeline(Legal())
    state = single.reset("x", RNG)
    assert single.legal_action(state, "solo", RNG) == (
        "### a\nlegal a 0\n### b\nlegal b 0\n### c\nlegal c 0"
    )
    assert (single.horizon_of("x"), pipeline.horizon_of("x")) == (1, 6)


class Prepared(Words):
    """Its `reset` and `step` record what they receive."""

    reset_with: ClassVar[list[str]] = []
    stepped_from: ClassVar[list[int]] = []

    def prepare(self, item):
        return f"prepared {item}"

    def reset(self, item, rng):
        self.reset_with.append(item)
        return super().reset(item, rng)

    def send(self, state, actions):
        return Said(state.turn + 10 * len(actions), state.last)

    def step(self, state, actions, rng):
        self.stepped_from.append(state.turn)
        return super().step(state, actions, rng)


class PreparedAlone(Prepared):
    agents = ("a",)


class PreparedOneTurn(Prepared):
    horizon = 1


@pytest.mark.parametrize("wrap", [Pipeline, Discussion, Single])
def test_a_wrapped_task_is_reset_with_what_it_has_prepared(wrap):
    task = wrap(Prepared())
    task.reset(task.prepare("x"), RNG)
    assert Prepared.reset_with.pop() == "prepared x"


@pytest.mark.parametrize(
    ("wrap", "inner", "count"), [(Discussion, Prepared, 3), (Single, PreparedAlone, 1)]
)
def test_a_task_whose_actions_are_passed_on_steps_from_what_it_was_sent(wrap, inner, count):
    task = wrap(inner())
    actions = dict.fromkeys("abc"[:count], "hi")
    task.step(task.send(task.reset("x", RNG), actions), actions, RNG)
    assert Prepared.stepped_from.pop() == 10 * count


def test_drafts_are_not_sent_to_the_task():
    task = Discussion(PreparedOneTurn())
    state, actions = task.reset("x", RNG), dict.fromkeys("abc", "hi")
    assert task.send(state, actions) is state
    drafted = task.step(state, actions, RNG).state
    assert task.send(drafted, actions).inner.turn == 30


@pytest.mark.parametrize(("wrap", "agent"), [(Pipeline, "a"), (Single, "solo")])
def test_actions_that_a_wrapper_changes_are_not_sent(wrap, agent):
    task = wrap(Prepared())
    state = task.reset("x", RNG)
    assert task.send(state, {agent: "hi"}) is state
