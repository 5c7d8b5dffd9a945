import itertools
import random
import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from colearn.contract import DecPOMDP, Headline
from colearn.contract.testing import check_task
from colearn.contract.testing.fingerprint import fingerprint
from colearn.contract.types import Outcome
from colearn.errors import ColearnError, ConfigError, MissingExtra, TaskError
from colearn.registry import load, names, task_class
from colearn.tasks.str_build import StrBuild
from tests.helpers.complete_tasks import COMPLETE_TASKS


def registered(name):
    try:
        return task_class(name)()
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", COMPLETE_TASKS)
def test_every_registered_task_passes(name):
    check_task(registered(name), seeds=(0,), episodes=1)


@pytest.mark.parametrize("wrapper", names("wrappers"))
@pytest.mark.parametrize("name", ["harvest", "math_duo", "search_mhgpo", "open_spiel"])
def test_a_task_passes_in_every_wrapper(name, wrapper):
    """Of agents that act at once, in turn, in a workflow, and for payoffs of their own."""
    task = registered(name)
    if wrapper == "single" and "team" not in task.pays:
        with pytest.raises(ConfigError, match=r"^wrapper: single plays for the team"):
            load("wrappers", wrapper).wrap(task)
        return
    check_task(load("wrappers", wrapper).wrap(task), seeds=(0,), episodes=1)


@pytest.mark.parametrize(("variant", "prompt"), [("paper", "full"), ("comlrl", "compact")])
def test_every_way_of_playing_str_build_passes(variant, prompt):
    task = StrBuild(variant=variant, prompt=prompt, agents=3)

    def build(state, agent, rng):
        if state.turn == 2:
            return task.reference_actions(state.item)[agent]
        return task.random_actions(state.item, agent, rng, 6)

    check_task(task, seeds=(0,), episodes=1, actions=build)


@dataclass(frozen=True)
class Sum:
    goal: int
    turn: int = 0
    said: int = 0


class Good(DecPOMDP[int, Sum]):
    """Say as many letters as the goal; both agents act at each turn."""

    agents = ("a", "b")
    horizon = 2
    reward_range = (-1, 0)

    def items(self, split):
        return (3, 4) if split == "train" else (5,)

    def reset(self, item, rng):
        return Sum(item + int(rng.integers(3)))

    def observe(self, state, agent):
        return f"{agent}: say {state.goal} letters, last time {state.said}"

    def step(self, state, actions, rng):
        said = sum(len(text) for text in actions.values())
        missed = min(1.0, abs(said - state.goal) / state.goal)
        after = Sum(state.goal, state.turn + 1, said)
        return Outcome(state=after, reward=-missed, done=missed == 0, local_rewards={"a": 0.5})

    def metrics(self, state):
        return {"said": float(state.said)}

    def global_info(self, state):
        return f"turn {state.turn}"


class InTurns(Good):
    """Sequential play: one agent per turn."""

    horizon = 3

    def observe(self, state, agent):
        return super().observe(state, agent) if agent == self.agents[state.turn % 2] else None


@pytest.mark.parametrize("task", [Good(), InTurns()])
def test_simultaneous_and_sequential_tasks_pass(task):
    check_task(task)


class NoAgents(Good):
    agents = ()


class TwinAgents(Good):
    agents = ("a", "a")


class NoHorizon(Good):
    horizon = 0


class NarrowRange(Good):
    reward_range = (-0.1, 0.0)


class BrokenRange(Good):
    reward_range = (1, -1)


class NoTestItems(Good):
    def items(self, split):
        return (3,) if split == "train" else ()


class EndlessItems(Good):
    def items(self, split):
        return itertools.count()


class MovingItems(Good):
    def items(self, split):
        return tuple(random.random() for _ in range(3))


class ClosureItems(Good):
    def items(self, split):
        return (lambda: 3,)


class Unpicklable(Good):
    def __init__(self):
        self.score = lambda said: said


class OwnDice(Good):
    def reset(self, item, rng):
        return Sum(item + random.randrange(1000))


class Counting(Good):
    def __init__(self):
        self.steps = 0

    def step(self, state, actions, rng):
        self.steps += 1
        outcome = super().step(state, actions, rng)
        return replace(outcome, state=replace(outcome.state, said=self.steps))


class Leaky(Good):
    """Shows agents, in the state that they acted in, what was done there."""

    memory = ""

    def observe(self, state, agent):
        return super().observe(state, agent) + type(self).memory

    def step(self, state, actions, rng):
        type(self).memory = ""  # forgotten at each step, so that steps themselves repeat
        outcome = super().step(state, actions, rng)
        type(self).memory = str(outcome.state.turn)
        return outcome


class Gossip(Good):
    """What an agent sees depends on who looked before it."""

    def __init__(self):
        self.looked = None

    def observe(self, state, agent):
        text = f"{agent} after {self.looked}"
        self.looked = agent
        return text


class Numbers(Good):
    def observe(self, state, agent):
        return [state.goal]


class Silent(Good):
    def observe(self, state, agent):
        return None


class SilentLater(Good):
    def observe(self, state, agent):
        return None if state.turn else "go"


class NotANumber(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), reward=float("nan"))


class TextReward(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), reward="1")


class Tuple(Good):
    def step(self, state, actions, rng):
        return state, 0.0, False, {}


class DoneOne(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), done=0)


class Stranger(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), local_rewards={"c": 1.0})


class StrangerEarned(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), earned={(0, "c"): 1.0})


class EarnedAhead(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), earned={(state.turn + 1, "a"): 1.0})


class EarnedLate(Good):
    def step(self, state, actions, rng):
        earned = {(0, "a"): 1.0} if state.turn == 1 else {}
        return replace(super().step(state, actions, rng), earned=earned)


class LocalInfinity(Good):
    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), local_rewards={"a": float("inf")})


class Fragile(Good):
    def step(self, state, actions, rng):
        return super().step(state, {agent: "x" * int(text) for agent, text in actions.items()}, rng)


class TakesActions(Good):
    def step(self, state, actions, rng):
        outcome = super().step(state, actions, rng)
        actions.clear()
        return outcome


@dataclass
class Board:
    goal: int = 3
    turn: int = 0
    said: int = 0
    moves: list = field(default_factory=list)


class Mutating(Good):
    def reset(self, item, rng):
        return Board()

    def step(self, state, actions, rng):
        state.moves.append(1)
        return Outcome(state=Board(turn=state.turn + 1), reward=0.0)


class GoesOn(Good):
    """The state that it gives back is the one that it was given, changed."""

    def reset(self, item, rng):
        return Board()

    def step(self, state, actions, rng):
        state.said += 1
        return Outcome(state=state, reward=0.0)


class LiveState(Good):
    def step(self, state, actions, rng):
        outcome = super().step(state, actions, rng)
        return replace(outcome, state=replace(outcome.state, said=sys.stdout))


class NoMetrics(Good):
    def metrics(self, state):
        return {}


class UnknownHeadline(Good):
    headline = Headline("soved")


class SometimesMetrics(Good):
    def metrics(self, state):
        return {f"goal {state.goal}": 1.0}


class EndlessMetrics(Good):
    def metrics(self, state):
        return {"said": float("inf")}


class TooShort(Good):
    def horizon_of(self, item):
        return 1


class TooLong(Good):
    def horizon_of(self, item):
        return 3


class NumberInfo(Good):
    def global_info(self, state):
        return state.turn


BROKEN = {
    NoAgents: "task.agents: must be a tuple of different, non-empty names, got ()",
    TwinAgents: "task.agents: must be a tuple of different, non-empty names",
    NoHorizon: "task.horizon: must be a whole number of 1 or more, got 0",
    NarrowRange: "lies outside reward_range (-0.1, 0.0); widen the range or bound the reward",
    BrokenRange: "task.reward_range: must be None or (low, high), both finite, got (1, -1)",
    NoTestItems: "task.items: split 'test' is empty; return at least one item",
    EndlessItems: "task.items: split 'train' is a count, must be a sequence",
    MovingItems: "at each call; fix the items in the constructor",
    ClosureItems: "task.items: an item does not pickle",
    Unpicklable: "task does not pickle",
    OwnDice: "task.reset: the same call gives something else again; draw from the given rng",
    Counting: "task.step: the same call gives something else again",
    Leaky: "depends on what agents did after observing it",
    Gossip: "task.observe: the same call gives something else",
    Numbers: "task.observe: agent 'a' was given a list, must be str, Observation or None",
    Silent: "task.observe: nobody acts at turn 0 although the episode is not done",
    SilentLater: "task.observe: nobody acts at turn 1 although the episode is not done",
    NotANumber: "task.step: reward is nan, must be a finite number",
    TextReward: "task.step: reward is a str, must be a finite number",
    Tuple: "task.step: gave a tuple, must be an Outcome",
    DoneOne: "task.step: done is a int, must be a bool",
    Stranger: "task.step: local_rewards names 'c', which is no agent; known: a, b",
    StrangerEarned: "task.step: earned: the key (0, 'c') must be (turn, agent); known agents: a, b",
    EarnedAhead: "task.step: earned names turn 1 of 'a' after 1 turns; turns are 0 to 0",
    EarnedLate: "task.step: pays (0, 'a') at turn 1, and pays_later is False; set pays_later",
    LocalInfinity: "task.step: local reward of 'a' is inf, must be a finite number",
    Fragile: "task.step: raised ValueError: invalid literal for int()",
    TakesActions: "task.step: changed the actions it was given; copy them first",
    Mutating: "task.step: changed the state it was given in place; make it a frozen dataclass",
    GoesOn: "task.step: changed the state it was given in place; make it a frozen dataclass",
    LiveState: "task.step: the state does not pickle",
    UnknownHeadline: "task.headline: 'soved' is no metric of the task",
    SometimesMetrics: "task.metrics: names change from ['goal 3'] to ['goal",
    EndlessMetrics: "task.metrics: 'said' is inf, must be a finite number",
    TooShort: "task.horizon_of: says 1, but the episode went on; give the turns of the item's",
    TooLong: "task.horizon_of: must be a whole number from 1 to task.horizon (2), got 3",
    NumberInfo: "task.global_info: gave a int, must be str",
}


class Even(Good):
    """An item is over at half of the horizon."""

    def step(self, state, actions, rng):
        return replace(super().step(state, actions, rng), done=True)

    def horizon_of(self, item):
        return 1


def test_an_item_may_have_fewer_turns_than_the_horizon():
    check_task(Even())


def test_a_task_needs_no_metrics_of_its_own():
    check_task(NoMetrics())


@pytest.mark.parametrize("broken", BROKEN, ids=lambda cls: cls.__name__)
def test_a_broken_task_is_caught_with_the_method_and_the_remedy(broken):
    with pytest.raises(TaskError) as caught:
        check_task(broken(), seeds=range(4), episodes=4)
    assert BROKEN[broken] in str(caught.value)
    assert "\n" not in str(caught.value) and isinstance(caught.value, ColearnError)
    assert ("in place" in str(caught.value)) == (broken in (Mutating, GoesOn))


def test_an_error_in_a_tasks_code_is_told_with_its_line():
    with pytest.raises(
        TaskError, match=r"ValueError: .* \([^()]*test_check_task\.py, line \d+\); "
    ):
        check_task(Fragile(), seeds=range(4), episodes=4)


class Leaves(Good):
    def step(self, state, actions, rng):
        raise SystemExit("the game is over")


def test_a_task_that_ends_the_process_is_told_as_in_a_run():
    with pytest.raises(TaskError, match=r"^task\.step: raised SystemExit: the game is over \("):
        check_task(Leaves())


class Deep(Good):
    reward_range = None

    def step(self, state, actions, rng):
        outcome = super().step(state, actions, rng)
        return replace(outcome, reward=float("nan")) if "open" in actions.values() else outcome


def test_proper_actions_reach_states_that_junk_does_not():
    check_task(Deep(), seeds=(0,), episodes=1)
    with pytest.raises(TaskError, match="reward is nan"):
        check_task(Deep(), seeds=(0,), episodes=1, actions=lambda state, agent, rng: "open")


def test_actions_that_are_no_text_are_named():
    with pytest.raises(TaskError, match="actions gave a int, must be str"):
        check_task(Good(), actions=lambda state, agent, rng: 1)


def test_fingerprints_compare_content_where_equality_does_not():
    class Plain:
        def __init__(self, value):
            self.value = value

    assert fingerprint(Plain([1, "x"])) == fingerprint(Plain([1, "x"]))
    assert fingerprint(Plain(1)) != fingerprint(Plain(2))
    assert fingerprint(np.arange(3)) == fingerprint(np.arange(3))
    assert fingerprint(np.arange(3)) != fingerprint(np.arange(3.0))
    assert fingerprint({1: 2, 3: 4}) == fingerprint({3: 4, 1: 2})
    assert fingerprint({"a", "b"}) == fingerprint({"b", "a"})
    assert fingerprint((1,)) != fingerprint((True,))
    assert fingerprint([1, 2]) != fingerprint([2, 1])
    assert fingerprint(float("nan")) == fingerprint(float("nan"))
    loop, other = [], []
    loop.append(loop)
    other.append(other)
    assert fingerprint(loop) == fingerprint(other)
