"""Who waits for whom: a slow branch holds nobody up in the free order, and lockstep repeats; and
what both orders must pass on."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import Notes, byte_tokenizer

from colearn.contract import ActionRequest, Player, TokenAnswer
from colearn.contract.types import Action, Tree
from colearn.errors import TaskError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.programs.workflow import Tool, Workflow
from colearn.rollout import lockstep
from colearn.rollout.agents import AgentSpec, ChatFormat, Program
from colearn.rollout.agents.programs import Says as Words
from colearn.rollout.forks import ForkOnFirst
from colearn.rollout.grow import Order, grow
from colearn.rollout.grow_tree import advance
from colearn.rollout.growth import Growth
from colearn.rollout.shapes import Chain, KaryTree
from tests.helpers.scripted_voice import Scripted, language_players


class Says:
    """The seat's name and a number of its own draw."""

    def act(self, view: Any) -> str:
        return f"{view.seat} {view.rng.integers(10**6)}"


class Slow(Workflow[str]):
    """The tool of the first branch that asks on a slow item ends when all the others have."""

    agents = ("asker", "answerer")
    horizon = 2
    measures = ("waited",)

    def __init__(self, others: int, patience: float) -> None:
        self.others, self.patience = others, patience
        self.tools = (Tool(self.look, timeout=3600.0),)
        self.lock, self.all_done = threading.Lock(), threading.Event()
        self.slow_one: str | None = None

    def items(self, split):
        return ["slow", "quick", "quick"]

    async def look(self, item: str, query: str) -> str:
        with self.lock:
            first = item == "slow" and self.slow_one in (None, query)
            if first:
                self.slow_one = query
        if first:
            return "found" if self.all_done.wait(self.patience) else "held up"
        return "found"

    async def run(self, team, item):
        query = await team.asker(f"ask {item}")
        look_up = await team.look(item, query)
        await team.answerer(f"{look_up}: answer {item}")
        if query != self.slow_one:
            with self.lock:
                self.others -= 1
                if not self.others:
                    self.all_done.set()
        team.measure(waited=float(look_up == "held up"))


def waited(
    others: int, shape: Any, order: Order, patience: float = 600.0
) -> tuple[float, list[Tree[Any]]]:
    """Whether the slow branch, after `patience` seconds, saw the others wait for it."""
    task = Slow(others, patience)
    players = {seat: Program(Says()) for seat in task.agents}
    trees, _ = grow(task, task.items("train"), players, shape, seed=0, order=order)
    return sum(leaf.metrics["waited"] for tree in trees for leaf in tree.leaves()), trees


@pytest.mark.parametrize(("shape", "others"), [(Chain(), 2), (ForkOnFirst(4), 11)])
def test_a_slow_branch_holds_up_neither_other_episodes_nor_its_siblings(shape, others):
    held, trees = waited(others, shape, "free")
    assert held == 0.0
    for tree in trees:
        assert [node.index for node in tree.nodes] == list(range(len(tree.nodes)))
        assert [node.path for node in tree.nodes] == sorted(
            (node.path for node in tree.nodes), key=lambda path: (len(path), path)
        )
        for node in tree.nodes[1:]:
            assert tree.nodes[node.parent].path == node.path[:-1]


def test_lockstep_waits_for_the_slow_branch():
    """The check above can fail."""
    assert waited(2, Chain(), "lockstep", patience=0.3)[0] == 1.0


class Waiting(Player):
    """Its answer to the first question comes only after every other question was answered."""

    def __init__(self, questions: int) -> None:
        self.others, self.asked = questions - 1, 0
        self.answered: asyncio.Event | None = None

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        if self.answered is None:
            self.answered = asyncio.Event()
        self.asked += 1
        if self.asked == 1:
            await asyncio.wait_for(self.answered.wait(), 600)
        else:
            self.others -= 1
            if self.others == 0:
                self.answered.set()
        return [TokenAnswer(Action("said")) for _ in request.seeds]


def test_a_slow_reply_of_a_server_delays_no_other_question() -> None:
    task = Notes(horizon=1, items=5)
    slow = Waiting(questions=5 * len(task.agents))
    players = dict.fromkeys(task.agents, slow)
    trees, counts = grow(task, task.items("train"), players, Chain(), seed=0, order="free")
    assert len(trees) == 5 and counts.generations == slow.asked == 5 * len(task.agents)


def test_a_player_that_answers_one_by_one_is_asked_all_at_once_in_lockstep() -> None:
    task = Notes(horizon=1, items=5)
    slow = Waiting(questions=5 * len(task.agents))
    trees, _ = grow(task, task.items("train"), dict.fromkeys(task.agents, slow), Chain(), seed=0)
    assert len(trees) == 5 and slow.others == 0


# --- what both orders pass on --------------------------------------------------------------------

ORDERS = pytest.mark.parametrize("order", ["lockstep", "free"])


class Wire(Player):
    """Always says the same."""

    def __init__(self, meeting: threading.Barrier | None = None) -> None:
        self.meeting = meeting

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        if self.meeting is not None:
            await asyncio.to_thread(self.meeting.wait, 10)
        return [TokenAnswer(Action("said")) for _ in request.seeds]


def played(order: Order, **settings: Any) -> list[Tree[Any]]:
    task = settings.pop("task", None) or Notes(horizon=2, items=2)
    players = settings.pop("players", None) or dict.fromkeys(task.agents, Wire())
    return grow(task, task.items("train"), players, KaryTree(2), seed=0, order=order, **settings)[0]


class Where(Notes):
    """Notes which threads step it."""

    threads: set[str]

    def step(self, state: Any, actions: Any, rng: Any) -> Any:
        self.threads.add(threading.current_thread().name.split("_")[0])
        return super().step(state, actions, rng)


@ORDERS
def test_a_pool_that_is_given_runs_the_steps(order: Order) -> None:
    task = Where(horizon=2, items=2)
    task.threads = set()
    alone = played(order, task=task)
    assert task.threads == {"MainThread"}
    task.threads = set()
    with ThreadPoolExecutor(2, thread_name_prefix="given") as pool:
        assert played(order, task=task, pool=pool) == alone
    assert task.threads == {"given"}


class Looping(Notes):
    """Its methods start an event loop and set an alarm, as reward functions do."""

    def step(self, state: Any, actions: Any, rng: Any) -> Any:
        signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        return asyncio.run(self.later(state, actions, rng))

    async def later(self, *arguments: Any) -> Any:
        return super().step(*arguments)


@ORDERS
def test_a_task_may_start_a_loop_and_set_an_alarm(order: Order) -> None:
    assert played(order, task=Looping(horizon=2, items=2)) == played(order)


class Interrupted(Notes):
    """The second step is interrupted."""

    steps = 0

    def step(self, state: Any, actions: Any, rng: Any) -> Any:
        self.steps += 1
        if self.steps == 2:
            raise KeyboardInterrupt
        return super().step(state, actions, rng)


@ORDERS
def test_an_interruption_ends_every_branch(order: Order) -> None:
    with pytest.raises(KeyboardInterrupt):
        played(order, task=Interrupted(items=3))
    assert not [
        t.name for t in threading.enumerate() if t.name.startswith(("loop", "task", "step"))
    ]


class Broken(Notes):
    def step(self, state: Any, actions: Any, rng: Any) -> Any:
        return None


@ORDERS
def test_a_tasks_mistake_comes_out_as_itself(order: Order) -> None:
    with pytest.raises(TaskError, match=r"^task\.step: gave a NoneType, must be an Outcome"):
        played(order, task=Broken(items=2))


@ORDERS
def test_players_of_different_places_speak_at_the_same_time(order: Order) -> None:
    """Each waits until the other is asked, too."""
    both = threading.Barrier(2)
    players = {"ada": Wire(both), "ben": Wire(both)}
    assert len(played(order, players=players, task=Notes(horizon=1, items=1))) == 1


class InTurn(Scripted):
    """Engines that take turns."""

    place = "one place"


def test_a_turn_of_lockstep_takes_as_long_as_its_slowest_engine(monkeypatch: Any) -> None:
    """The clock stands still but for the engines, which take 1/4 and 1/2 of a second."""
    seconds = itertools.cycle((0.25, 0.5))
    clock = (time for took in seconds for time in (0.0, took))
    monkeypatch.setattr(lockstep, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    task, voice = Notes(horizon=3, items=2), AgentSpec(chat=ChatFormat(byte_tokenizer()))
    players: dict[str, Any] = {}
    for agent in task.agents:
        engine = InTurn(Action("said", (5, 6), (-1.0, -1.0)))
        players |= language_players(engine, {agent: voice})
    _, counts = grow(task, task.items("train"), players, Chain(), seed=0)
    assert counts.response_seconds == [0.5, 0.5, 0.5]


class Notebook:
    """Writes down what it is told of a growing tree."""

    def __init__(self) -> None:
        self.grown_paths: list[Any] = []
        self.steps: list[Any] = []

    async def stepped(self, at: Any, outcome: Any) -> None:
        self.steps.append((at.path, outcome.done))

    async def grown(self, node: Any) -> None:
        self.grown_paths.append(node.path)


def test_a_listener_receives_every_step_and_every_node() -> None:
    task, notes = Notes(horizon=2, items=1), Notebook()
    players = dict.fromkeys(task.agents, Program(Words(text="oak")))
    item = task.items("train")[0]
    growth = Growth(
        task, item, Chain(), SharedReward(), players, {a: a for a in task.agents}, seed=0, episode=0
    )

    async def act(request: ActionRequest) -> list[TokenAnswer]:
        return [TokenAnswer(Action("oak")) for _ in request.seeds]

    async def here(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    asyncio.run(advance(growth, act, beside=here, step=here, listener=notes))
    assert notes.grown_paths == [(), (0,), (0, 0)]
    assert notes.steps == [((), False), ((0,), False)]
