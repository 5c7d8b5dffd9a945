"""Programs that misbehave cost their own episode: none reaches another one or stops the run."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import time
from contextlib import closing
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
from tests.helpers.hostile_gateway_programs import AWAITED, PROGRAMS, TAINT
from tests.helpers.scripted_voice import scripted_players

AGENTS = ("one", "two")
FAILURES = {
    "hangs": "no request and no end within 4 seconds",
    "blocks_its_thread": "no request and no end within 4 seconds",
    "repeats_a_refused_request": (
        "only refused requests within 4 seconds; the last refused request, to 'one': the context "
        "exceeds 16384 bytes (task.max_bytes)"
    ),
    "returns what is no reward": (
        "returned no valid reward: team must be finite, and at most 1e+09 in magnitude"
    ),
    "ends_with_400_digits": (
        "returned no valid reward: the result must be finite, and at most 1e+09 in magnitude"
    ),
    "returns 400 digits": (
        "returned no valid reward: one must be finite, and at most 1e+09 in magnitude"
    ),
    "returns a mapping that raises": f"returned no valid reward: ValueError: {TAINT}",
    "returns a number that raises": f"returned no valid reward: SystemExit: {TAINT}",
    "returns a number that raises beyond exceptions": (
        f"returned no valid reward: _Raises: {TAINT}"
    ),
    "returns what cancels": f"returned no valid reward: CancelledError: {TAINT}",
    "returns an odd key": (
        "returned no valid reward: a key is a _OddError, must be the name of an agent"
    ),
    "returns an object": "returned no valid reward: the result is a object, must be a number",
    "raises the end of the interpreter": f"SystemExit: {TAINT}",
    "raises what has no text": "_OddError: its str() raises",
    "raises what has a number for a text": "_OddText: its str() raises",
    "raises beyond exceptions": f"_Raises: ?[31m{TAINT}",
    "fails_with_control_characters": (f"?[2J {TAINT}???" + "!" * 1000)[:300],
    "fails_with_no_text": "[1, 'a\\x1b']",
}
"""What the record says of a program; of the others nothing: they were refused, and went on."""
SLOW = ("hangs", "blocks_its_thread", "repeats_a_refused_request")


def gateway(timeout):
    play = "tests.helpers.hostile_gateway_programs:play"
    items = "tests.helpers.gateway_programs:items"
    return Gateway(AGENTS, items, play=play, timeout=timeout, horizon=6, failure_reward=-1.0)


def live_episode():
    """An honest episode that waits for its first answer, and its task."""
    task = opened(gateway(600.0))
    return task, task.server.at(task.reset("honest", RNG).episode)


@pytest.fixture(scope="module")
def played():
    """By program, the trees of its episodes: all programs are played side by side, but for the
    slow ones, which play beside honest episodes of their own, with a shorter time limit."""
    players, tokenizer = scripted_players(AGENTS, "yes")
    quick = tuple(name for name in PROGRAMS if name not in SLOW)
    trees = {}
    for names, timeout in ((quick, 600.0), (SLOW, 4.0)):
        AWAITED.update(quick if names is quick else ())
        items = ["honest", *names, "honest"]
        with closing(gateway(timeout)) as task:
            grown, _ = grow(task, items, players, Chain(), seed=0, order="free")
        for name, tree in zip(items, grown, strict=True):
            trees.setdefault(name, []).append(tree)
    return trees, tokenizer


def test_honest_episodes_beside_hostile_ones_see_their_own_and_are_paid_in_full(played):
    trees, _ = played
    assert len(trees["honest"]) == 4
    for tree in trees["honest"]:
        final = tree.nodes[-1]
        assert [node.reward for node in tree.nodes] == [0.0, 0.0, 1.0]
        assert (final.metrics["failed"], final.metrics["requests"]) == (0.0, 2.0)
        texts = [o.text for node in tree.nodes for o in node.observations.values()]
        assert texts == ["say yes", "heard yes"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_is_recorded_and_nothing_of_its_own_is_trained(played, name):
    trees, tokenizer = played
    (tree,) = trees[name]
    final = tree.nodes[-1]
    assert said_of(tree) == FAILURES.get(name)
    assert final.metrics["reward"] == (-1.0 if name in FAILURES else 0.0)
    taint = tokenizer(TAINT, add_special_tokens=False)["input_ids"]
    for row in itertools.chain.from_iterable(actor_rows(tree, agent) for agent in AGENTS):
        for span in row.spans:
            assert not holds(row.tokens[span.start : span.end], taint)


def said_of(tree):
    """Why a program failed, without its file and line."""
    failure = tree.nodes[-1].state.failure
    place = re.escape(f" ({hostile_gateway_programs.__file__}, line ") + r"\d+\)$"
    return failure and re.sub(place, "", failure)


def holds(tokens, part):
    return any(list(tokens[n : n + len(part)]) == part for n in range(len(tokens)))


def test_the_record_names_the_line_at_which_a_program_failed(played):
    (tree,) = played[0]["raises the end of the interpreter"]
    assert tree.nodes[-1].state.failure != said_of(tree)


def test_an_episode_holds_64_waiting_requests():
    _, live = live_episode()
    body = parse(b'{"messages": [{"role": "user", "content": "a"}]}')
    for _ in range(63):  # one more is the program's own
        live.ask("two", body)
    with pytest.raises(ServeError, match="more than 64 requests of this episode wait"):
        live.ask("two", body)
    live.close()


def test_a_request_whose_client_has_just_left_can_be_answered():
    """Its handler is cancelled before it withdraws the request; the rollout answers in between."""
    _, live = live_episode()
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
    task, live = live_episode()
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
