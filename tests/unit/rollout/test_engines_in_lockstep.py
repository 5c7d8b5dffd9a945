"""Which engines a turn of lockstep asks, for what, and when, with stand-ins for the engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import Notes, byte_tokenizer

from colearn.contract import (
    ActionRequest,
    BatchEngine,
    Player,
    Sampling,
    TokenAnswer,
    TokenRequest,
)
from colearn.contract.types import Action
from colearn.rollout import lockstep
from colearn.rollout.agents import AgentSpec, ChatFormat, Language, Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from tests.helpers.scripted_voice import language_players


class Noted(BatchEngine):
    """Notes the batches that it is asked for; a text is the agent's name and a number of the
    seed."""

    def __init__(self, place: Hashable = None, meets: Callable[[], Any] = lambda: None) -> None:
        self._place, self.meets = place, meets
        self.batches: list[list[tuple[str, int]]] = []
        """Of each request: the agent and the length of its history."""
        self.temperatures: set[float] = set()
        self.taken: list[bool] = []
        """Whether it was this engine's turn, at each batch."""
        self.in_turn = False

    @property
    def place(self) -> Hashable:
        return id(self) if self._place is None else self._place

    def turn(self) -> Any:
        engine, inner = self, super().turn()

        class Turn:
            def __enter__(self) -> None:
                inner.__enter__()
                engine.in_turn = True

            def __exit__(self, *error: Any) -> None:
                engine.in_turn = False
                inner.__exit__(*error)

        return Turn()

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        self.meets()
        self.taken.append(self.in_turn)
        self.batches.append([(one.agent, len(one.history)) for one in requests])
        self.temperatures |= {one.sampling.temperature for one in requests}
        return [[self._say(one, seed) for seed in one.seeds] for one in requests]

    def sync(self) -> None: ...

    def _say(self, request: TokenRequest, seed: int) -> TokenAnswer:
        text = f"{request.agent} {seed % 1000}"
        return TokenAnswer(Action(text, tuple(text.encode())), request.history.act(text.encode()))


def players_of(task: Notes, engines: dict[str, Noted], **sampling: Any) -> dict[str, Language]:
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()), sampling=Sampling(**sampling))
    return {agent: language_players(engines[agent], {agent: voice})[agent] for agent in task.agents}


def both(engine: Noted) -> dict[str, Noted]:
    return {"ada": engine, "ben": engine}


def test_a_turn_is_one_batch_of_an_engine_in_the_order_of_trees_and_paths() -> None:
    """Two items, two joint actions at every node: 2, then 4 nodes ask, both agents at each."""
    task, engine = Notes(horizon=2, items=2), Noted()
    trees, counts = grow(
        task, task.items("train"), players_of(task, both(engine)), KaryTree(k=2), seed=0
    )
    asked = [
        [
            (agent, len(tree.history(node.index, agent).tokens))
            for tree in trees
            for node in tree.nodes
            if node.turn == turn
            for agent in node.observations
        ]
        for turn in (0, 1)
    ]
    assert engine.batches == asked and [len(batch) for batch in asked] == [4, 8]
    assert (counts.joint_actions, counts.generations) == (4 + 8, 8 + 16)


def test_it_is_the_engine_s_turn_whenever_it_generates() -> None:
    """Another run in this process may use the same weights."""
    task, engine = Notes(horizon=2, items=1), Noted()
    grow(task, task.items("train"), players_of(task, both(engine)), Chain(), seed=0)
    assert engine.taken == [True, True]


def test_engines_at_places_of_their_own_generate_at_the_same_time() -> None:
    """Each waits for the other; a program acts beside them."""
    together = threading.Barrier(2, timeout=600.0)
    task = Notes(agents=3, horizon=2, items=1)
    engines = {agent: Noted(meets=together.wait) for agent in task.agents}
    players: dict[str, Any] = {
        **players_of(task, engines),
        "cleo": Program(SimpleNamespace(act=lambda view: "owl")),
    }
    (tree,), _ = grow(task, task.items("train"), players, Chain(), seed=0)
    assert [node.actions["cleo"].text for node in tree.nodes[1:]] == ["owl", "owl"]
    assert [len(engines[agent].batches) for agent in task.agents] == [2, 2, 0]


def test_players_that_are_no_models_act_while_the_engine_generates_in_the_calling_thread() -> None:
    """Each waits for the other."""
    together, threads = threading.Barrier(2, timeout=600.0), set[threading.Thread]()
    task = Notes(horizon=2, items=1)

    def meets() -> None:
        threads.add(threading.current_thread())
        together.wait()

    def act(view: Any) -> str:
        together.wait()
        return "owl"

    players: dict[str, Any] = {
        **players_of(task, both(Noted(meets=meets))),
        "ben": Program(SimpleNamespace(act=act)),
    }
    (tree,), _ = grow(task, task.items("train"), players, Chain(), seed=0)
    assert [node.actions["ben"].text for node in tree.nodes[1:]] == ["owl", "owl"]
    assert threads == {threading.current_thread()}


class Silent(Player):
    """Never answers."""

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return await asyncio.get_running_loop().create_future()


def test_an_interruption_waits_for_no_player() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    task = Notes(horizon=2, items=1)
    players = {**players_of(task, both(Noted(meets=interrupted))), "ben": Silent()}
    with pytest.raises(KeyboardInterrupt):
        grow(task, task.items("train"), players, Chain(), seed=0)


def test_engines_at_one_place_generate_one_after_the_other() -> None:
    task, at_work = Notes(horizon=2, items=2), list[int]()

    def alone() -> None:
        at_work.append(1)
        assert len(at_work) == 1
        at_work.pop()

    engines = {agent: Noted(place="one base", meets=alone) for agent in task.agents}
    grow(task, task.items("train"), players_of(task, engines), Chain(), seed=0)
    assert [len(engine.batches) for engine in engines.values()] == [2, 2]


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_greedy_episodes_are_sampled_at_temperature_0_and_others_at_the_agent_s(order: Any) -> None:
    task = Notes(horizon=1, items=1)
    told = {}
    for greedy in (False, True):
        engine = Noted()
        players = players_of(task, both(engine), temperature=0.7)
        grow(
            task, task.items("train"), players, Chain(), seed=0, greedy=greedy, order=order
        )  # fmt: skip
        told[greedy] = engine.temperatures
    assert told == {False: {0.7}, True: {0.0}}


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_an_action_has_the_version_of_the_weights_when_it_was_asked_for(order: Any) -> None:
    """Weights that change while it is sampled are of the next action."""
    task = Notes(horizon=2, items=1)
    learner: Any = SimpleNamespace(steps=0)

    def updates() -> None:
        learner.steps += 1

    engines = both(Noted(meets=updates))
    players = {
        agent: replace(player, learner=learner)
        for agent, player in players_of(task, engines).items()
    }
    (tree,), _ = grow(task, task.items("train"), players, Chain(), seed=0, order=order)
    assert [{a.version for a in node.actions.values()} for node in tree.nodes[1:]] == [{0}, {1}]


def test_a_turn_takes_as_long_as_its_slowest_player(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ada's engine takes 3 s and Ben's 5 s, at one place, by a clock that only they move."""
    clock = [0.0]
    monkeypatch.setattr(lockstep, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def takes(seconds: float) -> Callable[[], None]:
        def work() -> None:
            clock[0] += seconds

        return work

    task = Notes(horizon=2, items=1)
    engines = {"ada": Noted("here", takes(3.0)), "ben": Noted("here", takes(5.0))}
    _, counts = grow(task, task.items("train"), players_of(task, engines), Chain(), seed=0)
    assert counts.response_seconds == [5.0, 5.0]
