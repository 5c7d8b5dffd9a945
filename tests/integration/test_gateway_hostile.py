"""Programs that misbehave cost their own episode: none reaches another one or stops the run."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import parse
from colearn.programs.gateway import connections
from colearn.programs.gateway.task import Gateway
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.learners.packed_rows import actor_rows
from tests.helpers import hostile_gateway_programs
from tests.helpers.gateway_programs import RNG, opened
from tests.helpers.hostile_gateway_programs import PROGRAMS, TAINT
from tests.helpers.scripted_voice import scripted_players

AGENTS = ("one", "two")
FAILURES = {
    "hangs": "no request and no end within 4 seconds",
    "blocks_its_thread": "no request and no end within 4 seconds",
    "dies": f"SystemExit: {TAINT}",
    "returns_what_is_no_reward": (
        "returned no valid reward: team must be finite, and at most 1e+09 in magnitude"
    ),
    "ends_with_400_digits": (
        "returned no valid reward: the result must be finite, and at most 1e+09 in magnitude"
    ),
    "returns_400_digits": (
        "returned no valid reward: one must be finite, and at most 1e+09 in magnitude"
    ),
    "returns_a_mapping_that_raises": f"returned no valid reward: ValueError: {TAINT}",
    "returns_a_number_that_raises": f"returned no valid reward: SystemExit: {TAINT}",
    "returns_a_number_that_raises_beyond_exceptions": (
        f"returned no valid reward: _Raises: {TAINT}"
    ),
    "returns_what_cancels": f"returned no valid reward: CancelledError: {TAINT}",
    "repeats_a_refused_request": "only refused requests within 4 seconds",
    "returns_an_odd_key": (
        "returned no valid reward: a key is a _OddError, must be the name of an agent"
    ),
    "returns_an_object": "returned no valid reward: the result is a object, must be a number",
    "raises_what_has_no_text": "_OddError: its str() raises",
    "raises_what_has_a_number_for_a_text": "_OddText: its str() raises",
    "raises_beyond_exceptions": f"_Raises: ?[31m{TAINT}",
    "fails_with_control_characters": (f"?[2J {TAINT}???" + "!" * 1000)[:300],
    "fails_with_no_text": "[1, 'a\\x1b']",
}
"""What the record says of a program; of the others nothing: they were refused, and went on."""
SLOW = {"hangs", "blocks_its_thread", "repeats_a_refused_request"}


def gateway(**settings):
    play = "tests.helpers.hostile_gateway_programs:play"
    defaults = {"play": play, "timeout": 20.0, "horizon": 6, "failure_reward": -1.0}
    return opened(
        Gateway(AGENTS, "tests.helpers.gateway_programs:items", **{**defaults, **settings})
    )


def played(names):
    """The trees of these programs, side by side."""
    players, tokenizer = scripted_players(AGENTS, "yes")
    task = gateway(timeout=4.0) if SLOW & {*names} else gateway()
    trees, _ = grow(task, names, players, Chain(), seed=0, order="free")
    return trees, tokenizer


def test_there_are_more_than_thirty():
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if number % 3 else [])
        for number, name in enumerate(PROGRAMS)
    ],
)
def test_a_hostile_program_reaches_no_other_episode(name):
    """Two honest episodes beside it: all they see is their own, and they are paid in full."""
    trees, tokenizer = played(["honest", name, "honest"])
    taint = tokenizer(TAINT, add_special_tokens=False)["input_ids"]
    for tree in (trees[0], trees[2]):
        final = tree.nodes[-1]
        assert [node.reward for node in tree.nodes] == [0.0, 0.0, 1.0]
        assert (final.metrics["failed"], final.metrics["requests"]) == (0.0, 2.0)
        texts = [o.text for node in tree.nodes for o in node.observations.values()]
        assert texts == ["say yes", "heard yes"]
    assert said_of(trees[1]) == FAILURES.get(name)
    for row in itertools.chain.from_iterable(actor_rows(t, a) for t in trees for a in AGENTS):
        for span in row.spans:
            assert not holds(row.tokens[span.start : span.end], taint)


def said_of(tree):
    """Why a program failed, without its file and line."""
    failure = tree.nodes[-1].state.failure
    place = re.escape(f" ({hostile_gateway_programs.__file__}, line ") + r"\d+\)$"
    return failure and re.sub(place, "", failure)


def holds(tokens, part):
    return any(list(tokens[n : n + len(part)]) == part for n in range(len(tokens)))


def test_a_failure_is_in_the_record():
    (tree,), _ = played(["dies"])
    assert said_of(tree) == f"SystemExit: {TAINT}"
    assert tree.nodes[-1].state.failure != said_of(tree)
    assert tree.nodes[-1].reward == -1.0


def test_an_episode_holds_64_waiting_requests():
    task = gateway(timeout=600.0)
    live = task.server.at(task.reset("honest", RNG).episode)
    body = parse(b'{"messages": [{"role": "user", "content": "a"}]}')
    for _ in range(63):  # one more is the program's own
        live.ask("two", body)
    with pytest.raises(ServeError, match="more than 64 requests of this episode wait"):
        live.ask("two", body)
    live.close()


def test_a_request_whose_client_has_just_left_can_be_answered():
    """Its handler is cancelled before it withdraws the request; the rollout answers in between."""
    task = gateway(timeout=600.0)
    live = task.server.at(task.reset("honest", RNG).episode)
    asked = live.ask("two", parse(b'{"messages": [{"role": "user", "content": "a"}]}'))

    async def leaves():
        waiting = asyncio.ensure_future(asyncio.wrap_future(asked.answer))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        live.answer(asked.name, {"model": "two"})

    asyncio.run(leaves())
    live.close()


def test_connections_without_end_cost_their_own_programs(monkeypatch):
    """A program holds more connections than there may be; another one's stay open."""
    monkeypatch.setattr(connections, "MOST", 40)
    task = gateway(timeout=600.0)
    live = task.server.at(task.reset("honest", RNG).episode)
    url = f"{task.server.endpoints(live)['two']}/models"
    address = urlsplit(url)
    with httpx.Client() as client:
        assert client.get(url).status_code == 200
        flood = [socket.create_connection((address.hostname, address.port)) for _ in range(90)]
        while sum(_closed(one) for one in flood) < 50:
            time.sleep(0.05)
        assert client.get(url).status_code == 200
        for one in flood:
            one.close()
    live.close()


def _closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
