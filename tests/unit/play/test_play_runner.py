"""A play with scripted servers: the numbers of the trainer's evaluation, and what losses do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from fastapi.responses import JSONResponse
from scripted_endpoint import ScriptedEndpoint, count_words, status
from tiny import Notes, Scene, byte_tokenizer

from colearn.config import EvaluationSettings
from colearn.contract import BatchEngine, TokenAnswer, TokenHistory, TokenRequest
from colearn.contract.picture import Cell, Panel, Picture
from colearn.contract.types import Action, Observation, Outcome
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.deploy.client.endpoint import AgentLost
from colearn.deploy.play import Played, play
from colearn.errors import TaskError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import AgentSpec, ChatFormat, Program
from colearn.rollout.agents.cast.seats import Own
from colearn.rollout.agents.programs import Says
from colearn.runs.record.transcript import transcript
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.processes import Processes
from tests.helpers.scripted_voice import language_players

AGENTS = ("ada", "ben")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.deploy.client.endpoint.FIRST_WAIT", 0.01)


@pytest.fixture
def servers() -> Iterator[dict[str, ScriptedEndpoint]]:
    with contextlib.ExitStack() as stack:
        yield {a: stack.enter_context(ScriptedEndpoint(name=a).serving()) for a in AGENTS}


def played(
    servers: Mapping[str, ScriptedEndpoint],
    task: Any = None,
    *,
    at_once: int = 16,
    tell: Callable[[dict[str, Any]], None] | None = None,
    retries: int = 2,
    **evaluation: Any,
) -> Played:
    agents = {
        name: AsyncRemoteAgent(server.url, name=name, timeout=600.0, retries=retries)
        for name, server in servers.items()
    }
    settings = EvaluationSettings(**evaluation)
    return asyncio.run(play(task or Notes(), agents, settings, seed=3, at_once=at_once, tell=tell))


class WithExamples(Notes):
    """Each agent's first prompt is a conversation, as a row of messages is."""

    def observe(self, state: Scene, agent: str) -> Any:
        text = super().observe(state, agent)
        turns = () if state.said else (("2 + 2?", "4"), ("3 + 3?", "6"))
        return None if text is None else Observation(text, turns=turns)


EXAMPLES = [("user", "2 + 2?"), ("assistant", "4"), ("user", "3 + 3?"), ("assistant", "6")]


def test_the_earlier_turns_of_a_prompt_are_messages_as_in_training(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    result = played(servers, WithExamples(horizon=2, items=1, clues=(("ash", "oak"),)))
    assert not result.lost and not any(episode.recovered for episode in result.episodes)
    for server, clue in zip(servers.values(), ("ash", "oak"), strict=True):
        first, second = [
            [(m["role"], m["content"]) for m in body["messages"]] for body in server.requests
        ]
        assert first == [*EXAMPLES, ("user", clue)]
        assert second[:5] == first and [role for role, _ in second[5:]] == ["assistant", "user"]


class Scripted(BatchEngine):
    """In this process what a scripted server is behind one: the same text for the same history
    and seed."""

    def __init__(self, chat: ChatFormat) -> None:
        self.chat = chat
        self.messages: WeakKeyDictionary[TokenHistory, Any] = WeakKeyDictionary()

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        return [[self._act(request)] for request in requests]

    def sync(self) -> None: ...

    def _act(self, request: TokenRequest) -> Any:
        new = request.history.ids[request.history.turns[-1].begin :]
        shown = {"role": "user", "content": self.chat.decode(tuple(new))}
        before = () if request.continues is None else self.messages[request.continues]
        text = count_words([*before, shown], request.seeds[0])
        action = Action(text, tuple(text.encode()))
        history = request.history.act(action.tokens)
        self.messages[history] = (*before, shown, {"role": "assistant", "content": text})
        return TokenAnswer(action, history)


def evaluated(task: Any, **evaluation: Any) -> Any:
    chat = ChatFormat(byte_tokenizer())
    return evaluate_team(
        task,
        language_players(Scripted(chat), dict.fromkeys(AGENTS, AgentSpec(chat=chat))),
        EvaluationSettings(**evaluation),
        seed=3,
        credit=SharedReward(),
        cast=Own(),
        processes=Processes(torch.device("cpu")),
    )


class Dice(Notes):
    """Random at the start and at every step."""

    def reset(self, item: tuple[str, ...], rng: np.random.Generator) -> Scene:
        return Scene(tuple(f"{clue} {rng.integers(100)}" for clue in item))

    def step(self, state: Scene, actions: Mapping[str, str], rng: Any) -> Outcome[Scene]:
        outcome = super().step(state, actions, rng)
        return replace(
            outcome, reward=outcome.reward + float(rng.random()), local_rewards={"ada": 1.0}
        )


@pytest.mark.parametrize(
    "task",
    [Dice(), Dice(sequential=True, horizon=4), Dice(ends=True)],
    ids=["together", "in turn", "ends early"],
)
def test_a_play_gives_the_numbers_and_episodes_of_evaluation_in_the_trainer(
    servers: dict[str, ScriptedEndpoint], task: Notes
) -> None:
    settings = {"episodes": 6, "repeats": 2}
    remote, local = played(servers, task, **settings), evaluated(task, **settings)
    timing = ("response_seconds",)
    assert list(remote.metrics) == list(local.metrics)
    for name in set(local.metrics) - set(timing):
        assert remote.metrics[name] == local.metrics[name], name
    for episode, tree in zip(remote.episodes, local.trees, strict=True):
        assert transcript(task, episode.tree) == transcript(task, tree)
        ids = [{a: x.tokens for a, x in node.actions.items()} for node in episode.tree.nodes]
        assert ids == [{a: x.tokens for a, x in node.actions.items()} for node in tree.nodes]


def test_every_episode_has_sessions_of_its_own_that_are_forgotten_at_its_end(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    played(servers)
    for server in servers.values():
        assert len(set(server.deleted)) == 4 and server.sessions == {}


def test_no_more_episodes_run_at_once_than_asked_for(servers: dict[str, ScriptedEndpoint]) -> None:
    events: list[dict[str, Any]] = []
    played(servers, at_once=2, repeats=2, tell=events.append)
    running = itertools.accumulate(
        {"started": 1, "ended": -1}.get(event["kind"], 0) for event in events
    )
    assert max(running) == 2


def test_a_history_too_long_for_a_server_ends_its_episode_as_in_training(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    refusal = status(400, "too long", name="context_length_exceeded")
    servers["ben"].faults = [lambda server: None] * 5 + [refusal]
    result = played(servers, at_once=1)
    assert not result.lost
    tree = result.episodes[1].tree
    assert [node.turn for node in tree.nodes] == [0, 1, 2]
    last = tree.nodes[-1]
    assert last.overlong == "ben" and last.terminal and last.metrics["letters"] > 0
    assert result.metrics["overflow"] == 0.25


def test_a_lost_agent_ends_its_own_episode_and_no_other(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    servers["ben"].faults = [lambda server: None] * 5 + [status(400, "too long")]
    result = played(servers, at_once=1)
    (lost,) = result.lost
    assert lost.tree.episode == 1 and lost.lost is not None
    assert (lost.lost.agent, lost.lost.turn) == ("ben", 2)
    assert [node.turn for node in lost.tree.nodes] == [0, 1, 2]
    rest = [tree for tree in evaluated(Notes()).trees if tree.episode != 1]
    assert result.metrics["return"] == np.mean([tree.returns(1.0)[0] for tree in rest])
    assert list(result.summary()) == [
        "played 3 of 4 episodes",
        f"lost 1: agent 'ben' at {servers['ben'].url}/v1: status 400: too long; "
        "episodes 1 (turn 3)",
    ]


def test_retries_are_counted_and_change_no_number(servers: dict[str, ScriptedEndpoint]) -> None:
    servers["ada"].faults = [status(500), status(503)]
    result = played(servers, at_once=1)
    assert result.retries == {"ada": 2} and not result.lost
    assert result.metrics["return"] == evaluated(Notes()).metrics["return"]
    assert list(result.summary())[1:] == ["retried 2: agent 'ada'"]


def test_a_server_that_dies_loses_what_is_not_played_yet(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    ended: list[int] = []

    def kill(event: dict[str, Any]) -> None:
        if event["kind"] == "ended":
            ended.append(event["episode"])
            servers["ben"].stop()

    result = played(servers, at_once=1, retries=1, tell=kill)
    assert ended == [0]
    assert [episode.tree.episode for episode in result.lost] == [1, 2, 3]
    assert result.metrics["turns"] == 3.0


def test_with_every_episode_lost_there_are_no_metrics(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    servers["ada"].faults = [status(400)] * 4
    result = played(servers)
    assert len(result.lost) == 4 and result.metrics == {}


def test_an_agent_that_is_not_there_at_the_start_stops_the_play(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    servers["ben"].stop()
    servers["ben"].url = "http://127.0.0.1:9"
    with pytest.raises(AgentLost, match=r"agent 'ben' at http://127\.0\.0\.1:9/v1"):
        played(servers, retries=0)
    assert servers["ada"].requests == []


def test_an_answer_that_is_no_action_loses_its_episode_alone(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    choice = {"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}
    servers["ada"].faults = [lambda server: JSONResponse({"choices": [choice]})]
    result = played(servers, episodes=2)
    (lost,) = result.lost
    assert lost.lost is not None and "the model refuses: I cannot." in lost.lost.reason
    assert len(result.episodes) == 2


def test_an_endpoint_that_does_not_count_tokens_leaves_their_metric_out(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    servers["ada"].faults = [lambda server: JSONResponse({"choices": [choice]})]
    result = played(servers)
    assert "tokens_per_turn" not in result.metrics and "return" in result.metrics


def test_a_task_that_breaks_its_contract_stops_the_play(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    class Wrong(Notes):
        def step(self, state: Scene, actions: Any, rng: Any) -> Any:
            return Outcome(state=state, reward=float("nan"))

    with pytest.raises(TaskError, match="reward is nan"):
        played(servers, Wrong())


def test_listeners_hear_every_step_of_an_episode(servers: dict[str, ScriptedEndpoint]) -> None:
    events: list[dict[str, Any]] = []
    played(servers, Notes(horizon=1), episodes=1, tell=events.append)
    kinds = [event["kind"] for event in events]
    assert kinds[:3] == ["planned", "started", "observed"]
    assert sorted(kinds[3:5]) == ["acted", "acted"]
    assert kinds[5:] == ["stepped", "observed", "ended", "finished"]
    assert events[0]["agents"] == {name: f"{server.url}/v1" for name, server in servers.items()}
    assert set(events[2]["observations"]) == {"ada", "ben"}
    assert events[2]["picture"] is None and events[2]["world"] is None


def test_listeners_see_the_world_as_text_and_as_plain_data(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    class World(Notes):
        def render(self, state: Scene) -> str:
            return "#" * len(state.said)

        def picture(self, state: Scene) -> Picture:
            return Picture(groups=((Panel("said", 1, 1, {(0, 0): Cell(owner="ada")}),),))

    events: list[dict[str, Any]] = []
    played(servers, World(horizon=1), episodes=1, tell=events.append)
    seen = [event for event in events if event["kind"] == "observed"]
    assert [event["picture"] for event in seen] == ["", "#"]
    assert seen[0]["world"]["groups"][0][0]["cells"] == [[0, 0, -1, 0, ""]]


class Exam(Notes):
    """The first of two items passes, the other does not."""

    def __init__(self) -> None:
        super().__init__(horizon=1, items=2)

    def metrics(self, state: Scene) -> Mapping[str, float]:
        return {"pass": float(state.clues == self.clues[0])}


def test_pass_at_k_is_that_of_evaluation_in_the_trainer(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    settings = {"repeats": 2, "pass_at": (1, 2)}
    remote, local = played(servers, Exam(), **settings), evaluated(Exam(), **settings)
    assert list(remote.metrics) == list(local.metrics)
    assert remote.metrics["pass@2"] == local.metrics["pass@2"] == 0.5


def test_pass_at_k_counts_the_episodes_that_were_played_out(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    """Of three episodes of the first item one is lost: pass@2 needs two."""
    servers["ben"].faults = [status(400)]
    result = played(servers, Exam(), at_once=1, repeats=3, pass_at=(2,))
    assert len(result.lost) == 1 and result.metrics["pass@2"] == 0.5


@pytest.mark.parametrize(("repeats", "k", "left"), [(2, 2, 1), (1, 1, 0)])
def test_pass_at_k_is_left_out_where_an_item_has_too_few_episodes(
    servers: dict[str, ScriptedEndpoint], repeats: int, k: int, left: int
) -> None:
    servers["ben"].faults = [status(400)]
    result = played(servers, Exam(), at_once=1, repeats=repeats, pass_at=(k,))
    assert f"pass@{k}" not in result.metrics and "return" in result.metrics
    assert list(result.summary())[-1] == (
        f"no pass@k: k = {k} needs as many episodes of each item, of one {left} were played out"
    )


class Instructed(Notes):
    """Ada's first turn opens with a system text of the task's."""

    def observe(self, state: Scene, agent: str) -> str | Observation | None:
        shown = super().observe(state, agent)
        if agent != "ada" or state.said:
            return shown
        assert isinstance(shown, str)
        return Observation(shown, fresh=True, system="You are Ada.")


def test_a_tasks_system_text_is_the_system_message_at_the_endpoint(
    servers: dict[str, ScriptedEndpoint],
) -> None:
    task = Instructed(horizon=2, items=1)
    played(servers, task)
    (clue, _) = task.items("train")[0]
    first, second = (request["messages"] for request in servers["ada"].requests)
    assert first == [
        {"role": "system", "content": "You are Ada."},
        {"role": "user", "content": clue},
    ]
    assert second[:2] == first and len(second) == 4
    assert servers["ben"].requests[0]["messages"][0]["role"] == "user"


def test_a_program_reads_the_system_text_too() -> None:
    prompt = Observation("Name a word.", fresh=True, system="You are Ada.")
    assert Program(Says()).read(prompt, None).whole == "You are Ada.\nName a word."
