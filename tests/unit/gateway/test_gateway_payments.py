"""Who is paid by a gateway's rewards, on recorded episodes, and which requests continue."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from colearn.contract.types import Observation
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.programs.gateway.contexts import Context, read_request
from colearn.programs.gateway.payments import NoReward, payment, read_result
from colearn.programs.gateway.program_run import Paid, ProgramRun
from colearn.programs.gateway.state import GatewayCall, GatewayState
from colearn.programs.gateway.task import Gateway
from colearn.programs.workflow.record import CallResult, Payment
from colearn.text.notes import note_once

EMPTY = Context(None, ())


def answered(*agents: str) -> GatewayState[Any]:
    """An episode in which these agents answered in turn, by requests `r0`, `r1`, ..."""
    events = tuple(
        CallResult(
            call=GatewayCall(
                number=turn,
                name=agent,
                text="go",
                prompt=Observation("go"),
                request=f"r{turn}",
                context=EMPTY,
                reason="first",
            ),
            result="said",
            turn=turn,
        )
        for turn, agent in enumerate(agents)
    )
    return GatewayState(item="owl", turn=len(agents), events=events)


AGENTS = ("one", "two", "three")
STATE = answered("one", "two", "one")


def test_a_returned_reward_of_an_unknown_agent_is_no_reward() -> None:
    assert read_result({"three": 1.0}, STATE, AGENTS) == [], "it gave no answer in this episode"
    with pytest.raises(NoReward, match=r"^a key is no agent's name; known: team, one, two, three$"):
        read_result({"on": 1.0}, STATE, AGENTS)


def test_a_returned_reward_of_an_agent_is_for_all_its_actions_and_no_others() -> None:
    paid = read_result({"team": 1.0, "one": 2.0, "two": 3.0}, STATE, AGENTS)
    assert paid == [
        Payment(value=1.0),
        Payment(value=2.0, actions=((0, "one"), (2, "one"))),
        Payment(value=3.0, actions=((1, "two"),)),
    ]


@pytest.mark.parametrize(
    ("posted", "actions"),
    [
        (Paid(4.0), None),
        (Paid(4.0, agent="one"), ((0, "one"), (2, "one"))),
        (Paid(4.0, agent="two"), ((1, "two"),)),
        (Paid(4.0, request="r2"), ((2, "one"),)),
    ],
)
def test_a_posted_reward_is_for_the_team_an_agents_actions_or_one_action(
    posted: Paid, actions: tuple[tuple[int, str], ...] | None
) -> None:
    assert payment(STATE, posted) == Payment(value=4.0, actions=actions)


@pytest.mark.parametrize(
    ("ending", "paid"),
    [
        ({"result": 5.0}, [Payment(value=5.0)]),
        ({"result": 5.0, "failure": "the disk is full"}, [Payment(value=-1.0)]),
        ({"result": 5.0, "ended": False}, []),
    ],
)
def test_a_failed_program_costs_its_failure_reward_and_one_that_is_cut_off_pays_nothing(
    ending: dict[str, Any], paid: list[Payment]
) -> None:
    task = Gateway(("one", "two"), "tests.gateway_programs:items", failure_reward=-1.0)
    live = ProgramRun(0, task.agents, "owl")
    live.end(**ending)
    assert task._last(STATE, live) == paid


def test_an_episode_that_is_cut_before_its_program_ends_has_no_reward() -> None:
    task = Gateway(AGENTS, "tests.helpers.gateway_programs:items")
    metrics = task.metrics(STATE)
    assert (metrics["reward"], metrics["requests"]) == (None, 0.0)
    assert task.metrics(replace(STATE, finished=True))["reward"] == 0.0


@pytest.mark.parametrize(("result", "noted"), [(None, True), (0.0, False)])
def test_a_program_that_ends_without_any_reward_is_noted(
    result: float | None, noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    note_once.cache_clear()
    task = Gateway(("one", "two"), "tests.gateway_programs:items")
    live = ProgramRun(0, task.agents, "owl")
    live.end(result=result)
    with closing(task):
        task._collect(STATE, live)
    told = "ended without a result and without a posted reward, which counts as 0"
    assert (told in capsys.readouterr().err) is noted


def asked(*messages: tuple[str, str]) -> ChatRequest:
    return ChatRequest.model_validate(
        {"messages": [{"role": r, "content": t} for r, t in messages]}
    )


def test_a_request_continues_a_context_only_with_what_its_agent_has_said() -> None:
    _, context, _ = read_request(asked(("user", "look")), None)
    before = context.answered("a red door")
    said = (("user", "look"), ("assistant", "a red door"))
    reasons = [
        read_request(asked(*said, ("user", "open it")), before)[2],
        read_request(asked(*said, ("assistant", "I open it"), ("user", "and?")), before)[2],
        read_request(asked(("user", "look"), ("assistant", "a wall"), ("user", "go")), before)[2],
    ]
    assert reasons == ["continued", "others", "dropped"]
