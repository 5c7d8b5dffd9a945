"""A workflow is played turn by turn, replays from its record, and says what came from what."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.contract.types import Outcome
from colearn.errors import ConfigError, TaskError
from colearn.programs.workflow import Tool, ToolError, Workflow, WorkflowState

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Sum:
    numbers: tuple[int, ...]


async def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


async def broken(number: int) -> int:
    """Always fails."""
    raise ValueError("no such\nnumber")


async def stopped() -> str:
    """Leaves the interpreter."""
    raise SystemExit(3)


async def cancelled() -> str:
    """Raises what a cancelled call would."""
    raise asyncio.CancelledError("by itself")


async def slow() -> str:
    """Never in time."""
    await asyncio.sleep(60)
    return "late"


class Base(Workflow[Sum]):
    """Roles a, b and c; the tests write `run`."""

    agents = ("a", "b", "c")
    horizon = 8
    measures = ("score",)
    tools = (Tool(double), Tool(broken), Tool(slow, timeout=0.05))

    def items(self, split):
        return [Sum((1, 2))]


class Chain(Base):
    async def run(self, team, item):
        first = await team.a(f"start {item.numbers[0]}")
        twice = await team.double(int(first))
        second = await team.b(f"{twice}?")
        team.reward(1.0)
        team.reward(-0.5, to=first)
        await team.c("last")
        team.reward(0.25, to=[first, second])
        team.measure(score=float(second))


class Branches(Base):
    async def run(self, team, item):
        async def branch(first, then):
            return await getattr(team, then)(await getattr(team, first)(first))

        await asyncio.gather(branch("a", "b"), team.c("c"))
        await team.a("joined")


def play(task: Workflow, *turns: Mapping[str, str]) -> list[Outcome]:
    """The outcomes of these joint actions, one after the other."""
    state, outcomes = task.reset(task.items("train")[0], RNG), []
    for said in turns:
        assert set(joint_observations(task, state)) == set(said)
        outcomes.append(task.step(state, said, RNG))
        state = outcomes[-1].state
    return outcomes


def prompts(task: Workflow, state: WorkflowState) -> dict[str, tuple[str, tuple]]:
    """By acting role, its prompt and the actions that it was made from."""
    seen = joint_observations(task, state)
    return {role: (prompt.text, prompt.made_from) for role, prompt in seen.items()}


def test_each_call_of_a_role_is_a_turn_with_a_prompt_of_its_own():
    task = Chain()
    state = task.reset(Sum((1, 2)), RNG)
    assert prompts(task, state) == {"a": ("start 1", ())}
    state = task.step(state, {"a": "21"}, RNG).state
    assert prompts(task, state) == {"b": ("42?", ((0, "a"),))}
    assert task.observe(state, "b").fresh


def test_a_prompt_is_made_from_the_latest_answers_also_through_a_tool():
    task = Chain()
    *_, last = play(task, {"a": "1"}, {"b": "2"})
    assert prompts(task, last.state) == {"c": ("last", ((1, "b"),))}


def test_rewards_go_to_the_team_to_an_answer_and_late_to_earlier_answers():
    first, second, third = play(Chain(), {"a": "1"}, {"b": "7"}, {"c": ""})
    assert (first.reward, first.local_rewards, first.earned) == (0.0, {}, {})
    assert (second.reward, second.local_rewards) == (1.0, {})
    assert second.earned == {(0, "a"): -0.5}
    assert (third.reward, third.local_rewards) == (0.0, {})
    assert third.earned == {(0, "a"): 0.25, (1, "b"): 0.25}
    assert third.done and not second.done


def test_a_reward_for_the_answer_just_given_is_a_local_reward():
    class Told(Base):
        async def run(self, team, item):
            team.reward(0.5, to=await team.a("?"))
            await team.b("?")

    (first,) = play(Told(), {"a": "1"})
    assert (first.local_rewards, first.earned) == ({"a": 0.5}, {})


def test_a_reward_for_a_role_goes_to_all_that_it_has_said():
    class Twice(Base):
        async def run(self, team, item):
            await team.a("1")
            await team.a("2")
            await team.b("3")
            team.reward(2.0, to="a")

    *_, last = play(Twice(), {"a": ""}, {"a": ""}, {"b": ""})
    assert last.earned == {(0, "a"): 2.0, (1, "a"): 2.0}


def test_branches_that_wait_at_once_are_one_turn_of_several_agents():
    task = Branches()
    state = task.reset(Sum(()), RNG)
    assert prompts(task, state) == {"a": ("a", ()), "c": ("c", ())}
    state = task.step(state, {"a": "x", "c": "y"}, RNG).state
    assert prompts(task, state) == {"b": ("x", ((0, "a"),))}
    state = task.step(state, {"b": "z"}, RNG).state
    assert prompts(task, state) == {"a": ("joined", ((0, "c"), (1, "b")))}


def test_a_role_called_twice_at_once_answers_one_call_a_turn():
    class Both(Base):
        async def run(self, team, item):
            one, two, other = await asyncio.gather(team.a("1"), team.a("2"), team.b("3"))
            await team.c(f"{one} {two} {other}")

    task = Both()
    state = task.reset(Sum(()), RNG)
    assert prompts(task, state) == {"a": ("1", ()), "b": ("3", ())}
    state = task.step(state, {"a": "x", "b": "z"}, RNG).state
    assert prompts(task, state) == {"a": ("2", ())}
    state = task.step(state, {"a": "y"}, RNG).state
    assert prompts(task, state)["c"] == ("x y z", ((0, "a"), (0, "b"), (1, "a")))


def test_after_says_what_a_prompt_was_made_from():
    class Said(Base):
        async def run(self, team, item):
            first = await team.a("1")
            second = await team.b("2", after=())
            await team.c("3", after=first)
            await team.a("4", after=[first, second])

    task = Said()
    *_, state = [o.state for o in play(task, {"a": ""}, {"b": ""})]
    assert prompts(task, state)["c"][1] == ((0, "a"),)
    state = task.step(state, {"c": ""}, RNG).state
    assert prompts(task, state)["a"][1] == ((0, "a"), (1, "b"))


def test_a_state_forks_and_pickles():
    task = Branches()
    (outcome,) = play(task, {"a": "x", "c": "y"})
    copy = pickle.loads(pickle.dumps(outcome.state))
    one = task.step(outcome.state, {"b": "1"}, RNG).state
    other = task.step(copy, {"b": "2"}, RNG).state
    again = task.step(copy, {"b": "1"}, RNG).state
    assert one == again != other


def test_a_tool_is_used_once_and_its_result_replayed():
    used = []

    async def count() -> int:
        """How often it was used."""
        used.append(1)
        return len(used)

    class Counted(Base):
        tools = (Tool(count),)

        async def run(self, team, item):
            number = await team.count()
            for _ in range(3):
                await team.a(str(number))

    play(Counted(), {"a": ""}, {"a": ""}, {"a": ""})
    assert len(used) == 1


def test_a_tool_that_fails_or_is_slow_gives_text():
    class Tried(Base):
        async def run(self, team, item):
            texts = [await team.broken(1), await team.slow(), await team.double("many")]
            assert all(isinstance(text, ToolError) for text in texts)
            await team.a("|".join(texts))

    task = Tried()
    text = task.observe(task.reset(Sum(()), RNG), "a").text.split("|")
    assert text[:2] == [
        "broken: ValueError: no such number",
        "slow: no result within 0.05 seconds",
    ]
    assert text[2].startswith("number: Input should be a valid integer")


def test_a_tool_without_types_is_given_an_infinity_as_it_is():
    async def show(number):
        return repr(number)

    tool = Tool(show)
    assert asyncio.run(tool(tool.spell(tool.bind((), {"number": math.inf})))) == "inf"


def test_a_tool_is_given_the_types_of_its_signature():
    async def calendar(day: date, tags: set[str]) -> str:
        """What happens on a day."""
        return f"{day.year} {sorted(tags)}"

    class Asked(Base):
        tools = (Tool(calendar),)

        async def run(self, team, item):
            await team.a("when?", tools=["calendar"])

    task = Asked()
    call = '{"name": "calendar", "arguments": {"day": "2024-01-31", "tags": ["x", "x"]}}'
    said = {"a": f"<tool_call>{call}</tool_call>"}
    state = task.step(task.reset(Sum(()), RNG), said, RNG).state
    assert "2024 ['x']" in task.observe(state, "a").text


def test_a_tool_that_leaves_the_interpreter_or_cancels_itself_gives_text():
    class Tried(Base):
        tools = (Tool(stopped), Tool(cancelled))

        async def run(self, team, item):
            texts = [await team.stopped(), await team.cancelled()]
            assert all(isinstance(text, ToolError) for text in texts)
            await team.a("|".join(texts))

    task = Tried()
    text = task.observe(task.reset(Sum(()), RNG), "a").text.split("|")
    assert text == ["stopped: SystemExit: 3", "cancelled: CancelledError: by itself"]


def test_a_mistake_of_the_user_s_in_a_tool_is_told_to_the_user_and_not_to_a_role():
    async def lookup() -> str:
        """Needs what is not there."""
        raise ConfigError("task.encoder: no folder nowhere; give one that is there")

    class Asked(Base):
        tools = (Tool(lookup),)

        async def run(self, team, item):
            await team.a(await team.lookup())

    with pytest.raises(ConfigError, match=r"^task\.encoder: no folder"):
        Asked().reset(Sum(()), RNG)


def test_tools_that_wait_at_once_are_used_at_once():
    running = []

    async def meet() -> int:
        """Ends when two are running."""
        running.append(1)
        while len(running) < 2:
            await asyncio.sleep(0.001)
        return len(running)

    class Met(Base):
        tools = (Tool(meet, timeout=600.0),)

        async def run(self, team, item):
            await team.a(str(await asyncio.gather(team.meet(), team.meet())))

    task = Met()
    assert task.observe(task.reset(Sum(()), RNG), "a").text == "[2, 2]"


def test_a_role_uses_tools_in_the_middle_of_its_turn_in_one_context():
    class Using(Base):
        async def run(self, team, item):
            answer = await team.a("double 4", tools=["double"])
            assert answer == "it is 8"
            team.reward(1.0, to=answer)
            await team.b("next")

    task = Using()
    call = '<tool_call>{"name": "double", "arguments": {"number": 4}}</tool_call>'
    (first,) = play(task, {"a": call})
    seen = task.observe(first.state, "a")
    assert (seen.text, seen.fresh) == ("<tool_response>8</tool_response>", False)
    assert seen.made_from == ((0, "a"),)
    second = task.step(first.state, {"a": "it is 8"}, RNG)
    assert second.local_rewards == {"a": 1.0} and second.earned == {(0, "a"): 1.0}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("<tool_call>double 4</tool_call>", "with a name and arguments; this is no JSON"),
        ('<tool_call>{"name": "slow", "arguments": {}}', "no tool 'slow'; there is double"),
        ('<tool_call>{"name": "double", "arguments": {"n": 4}}', "missing a required argument"),
    ],
)
def test_a_wrong_tool_call_is_answered_with_text(said, told):
    class Using(Base):
        async def run(self, team, item):
            await team.a("double 4", tools=["double"])

    task = Using()
    (first,) = play(task, {"a": said})
    assert told in task.observe(first.state, "a").text


def test_a_role_may_call_tools_so_many_times_and_no_more():
    call = '<tool_call>{"name": "double", "arguments": {"number": 4}}</tool_call>'

    class Using(Base):
        async def run(self, team, item):
            assert await team.a("double 4", tools=["double"], tool_calls=1) == call

    *_, last = play(Using(), {"a": call}, {"a": call})
    assert last.done


def test_a_loop_with_an_early_exit_ends_where_the_run_ends():
    class Rounds(Base):
        async def run(self, team, item):
            for _ in range(3):
                if await team.a("go on?") == "stop":
                    break

    assert [o.done for o in play(Rounds(), {"a": "go"}, {"a": "stop"})] == [False, True]
    assert [o.done for o in play(Rounds(), *[{"a": "go"}] * 3)] == [False, False, True]


def test_what_a_run_has_not_set_is_not_measured_before_its_end():
    task = Chain()
    assert task.metrics(task.reset(Sum((1, 2)), RNG)) == {"score": None}
    *_, last = play(task, {"a": "1"}, {"b": "7"}, {"c": ""})
    assert task.metrics(last.state) == {"score": 7.0}


def test_what_a_run_that_has_ended_has_not_set_is_0():
    class Silent(Base):
        async def run(self, team, item):
            await team.a("say")

    *_, last = play(Silent(), {"a": "1"})
    assert Silent().metrics(last.state) == {"score": 0.0}


def test_it_runs_inside_another_event_loop():
    async def inside():
        return play(Chain(), {"a": "1"}, {"b": "7"}, {"c": ""})[-1].done

    assert asyncio.run(inside())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("await team.d('x')", "no role or tool 'd'"),
        ("await asyncio.sleep(1)", "has no clock"),
        ("await asyncio.get_running_loop().create_future()", "other than a role or a tool"),
        ("team.reward(float('nan'))", "must be a finite number"),
        ("team.reward(1.0, to='b')", "which has no answer yet"),
        ("team.reward(1.0, to=[])", "reward for no answer, so nobody is paid"),
        ("team.measure(scores=1.0)", "'scores' is not in `measures`"),
        ("await team.a(3)", "given a int, must be str"),
        ("pass", "ends before it asked a role"),
        ("await team.a('x', tools=['drill'])", "no tool 'drill'"),
    ],
)
def test_a_mistake_of_a_run_is_one_line(program, message):
    scope: dict = {"asyncio": asyncio}
    exec(f"async def run(self, team, item):\n    {program}", scope)
    task = type("Mistaken", (Base,), {"run": scope["run"]})()
    with pytest.raises(TaskError, match=message) as error:
        task.reset(Sum(()), RNG)
    assert "\n" not in str(error.value)


class Unmeasured(Workflow[Sum]):
    """Sets what it must and nothing else."""

    agents = ("a",)
    horizon = 2

    def items(self, split):
        return [Sum((1, 2))]

    async def run(self, team, item):
        await team.a("one")
        team.reward(1.0)


def test_a_workflow_that_measures_nothing_holds_the_contract():
    check_task(Unmeasured())


class Misspelt(Unmeasured):
    """Reads what its item does not have, before or after its role has answered."""

    def __init__(self, asked):
        self.asked = asked

    async def run(self, team, item):
        for _ in range(self.asked):
            await team.a("one")
        await team.a(item.nubmers)


@pytest.mark.parametrize("asked", [0, 1])
def test_an_attribute_that_a_run_misspells_is_told_with_its_line(asked):
    line = Misspelt.run.__code__.co_firstlineno + 3
    with pytest.raises(TaskError) as error:
        check_task(Misspelt(asked))
    assert "raised AttributeError: 'Sum' object has no attribute 'nubmers'" in str(error.value)
    assert f"({__file__}, line {line})" in str(error.value) and "\n" not in str(error.value)


def test_a_run_that_changes_its_item_changes_no_replay_and_no_later_episode():
    class Notes(Base):
        async def run(self, team, item):
            for _ in range(2):
                item["notes"].append(await team.a("note"))
            team.reward(float(len(item["notes"])))

    item = {"notes": []}
    for _ in range(2):
        state = Notes().reset(item, RNG)
        state = Notes().step(state, {"a": "x"}, RNG).state
        assert Notes().step(state, {"a": "y"}, RNG).reward == 2.0
    assert item == {"notes": []}


def test_a_run_that_does_not_replay_is_told_so():
    prompts = iter(["1", "2"])

    class Random(Base):
        async def run(self, team, item):
            await team.a(next(prompts))

    task = Random()
    state = task.reset(Sum(()), RNG)
    with pytest.raises(TaskError, match="does not replay: call 0 was to 'a'"):
        task.step(state, {"a": "x"}, RNG)


def test_a_role_and_a_tool_cannot_share_a_name():
    class Both(Chain):
        agents = ("a", "double")

    with pytest.raises(TaskError, match="'double' names a role and a tool"):
        Both().reset(Sum((1,)), RNG)


def test_a_tool_announces_its_schema():
    schema = Tool(double).schema
    assert (schema["name"], schema["description"]) == ("double", "Twice the number.")
    assert schema["inputSchema"]["properties"]["number"]["type"] == "integer"
    assert schema["inputSchema"]["required"] == ["number"]


def test_the_report_s_picture_has_a_lane_for_each_role_and_tool():
    task = Chain()
    first, *_ = play(task, {"a": "1"})
    (panel,) = task.picture(first.state).panels
    assert (panel.columns, panel.rows) == (3, 6)
    assert panel.title.startswith("calls by a, b, c, ") and panel.title.endswith("from the top")
    assert {at: cell.kind for at, cell in panel.cells.items()} == {
        (0, 0): "a",
        (1, 3): "double",
        (2, 1): "b",
    }


def test_render_tells_each_call_in_a_line():
    *_, last = play(Chain(), {"a": "1"}, {"b": "7"}, {"c": "two\nlines"})
    assert Chain().render(last.state).splitlines() == [
        "0 t=0 a <- [], earned -0.25: 1",
        '1 tool double({"number": 1}) <- [0]: 2',
        "2 t=1 b <- [1], earned +0.25: 7",
        "3 t=2 c <- [2]: two lines",
    ]


class Instructed(Base):
    async def run(self, team, item):
        first = await team.a("a question", system="Be brief.")
        await team.a("why?", fresh=False)
        await team.b(f"read {first}")


def test_a_roles_system_text_opens_its_context_and_replays():
    task = Instructed()
    state = task.reset(Sum((1, 2)), RNG)
    asked = []
    for _ in range(3):
        ((role, prompt),) = joint_observations(task, state).items()
        asked.append((role, prompt.text, prompt.system, prompt.fresh))
        state = task.step(state, {role: "said"}, RNG).state
    assert asked == [
        ("a", "a question", "Be brief.", True),
        ("a", "why?", None, False),
        ("b", "read said", None, True),
    ]
    assert state.finished


class LateSystem(Base):
    async def run(self, team, item):
        await team.a("a question")
        await team.a("why?", fresh=False, system="Be brief.")


def test_a_system_text_within_a_context_is_an_error():
    task = LateSystem()
    state = task.reset(Sum((1, 2)), RNG)
    with pytest.raises(TaskError, match="role 'a' was given a system text within its context; "):
        task.step(state, {"a": "said"}, RNG)
