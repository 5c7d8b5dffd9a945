"""A person in a seat: asked in the page, answering there, waited for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from fastapi.testclient import TestClient
from scripted_endpoint import ScriptedEndpoint
from tiny import Notes
from typer.testing import CliRunner

from colearn.config import EvaluationSettings, load_config
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.deploy.play import Person, Played, play
from colearn.deploy.play.seat import seen_from
from colearn.deploy.play.team import make_team
from colearn.deploy.play.watch import Watch, watch_app, watched
from colearn.entry.cli import app
from colearn.errors import ConfigError
from colearn.tasks.open_spiel import OpenSpiel


def played(answer: Any, **settings: Any) -> tuple[Played, list[dict[str, Any]]]:
    """Ada is a person, who gives `answer(event)` to each question, Ben a server."""
    person, told = Person(), list[dict[str, Any]]()

    async def run() -> Played:
        def tell(event: dict[str, Any]) -> None:
            told.append(event)
            if event["kind"] == "asked":
                text = answer(event)
                asyncio.get_running_loop().call_later(
                    0.01, lambda: person.answer(event["episode"], text)
                )

        with ScriptedEndpoint(name="ben").serving() as server:
            ben = AsyncRemoteAgent(server.url, name="ben")
            team = {"ada": person, "ben": ben}
            return await play(
                Notes(horizon=2), team, EvaluationSettings(**settings), seed=3, tell=tell
            )

    return asyncio.run(asyncio.wait_for(run(), 600)), told


def test_a_person_plays_a_seat_beside_a_server() -> None:
    """Each answer reaches the turn and the episode that it is for."""
    result, told = played(lambda event: f"turn {event['turn']} of {event['episode']}", episodes=3)
    for number, episode in enumerate(result.episodes):
        assert episode.lost is None
        said = [node.actions["ada"].text for node in episode.tree.nodes[1:]]
        assert said == [f"turn 0 of {number}", f"turn 1 of {number}"]
        assert all(node.actions["ben"].text for node in episode.tree.nodes[1:])
    asked = sorted((e["episode"], e["turn"], e["agent"]) for e in told if e["kind"] == "asked")
    assert asked == [(episode, turn, "ada") for episode in range(3) for turn in range(2)]


def test_people_play_a_game_through_the_page_alone() -> None:
    """Over HTTP: `/events` says who is asked and what each saw, `/say` takes the answers."""
    people = {"player_0": Person(), "player_1": Person()}
    said = {"player_0": "bet", "player_1": "pass"}
    seen: dict[str, list[dict[str, Any]]] = {"player_0": [], "player_1": []}

    def at_the_page(url: str, seat: str) -> None:
        events = seen[seat]
        with (
            httpx.Client(base_url=url, timeout=600) as page,
            page.stream("GET", "/events", params={"seat": seat}) as stream,
        ):
            for line in stream.iter_lines():
                if not line.startswith("data: "):
                    continue
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["kind"] == "finished":
                    return
                if events[-1]["kind"] == "asked":
                    answer = {"agent": seat, "episode": 0, "text": said[seat]}
                    assert page.post("/say", json=answer).status_code == 204

    async def run() -> Played:
        task = OpenSpiel(games="kuhn_poker", prompt="compact")
        async with watched("kuhn poker", 0, people) as watch:
            pages = [asyncio.to_thread(at_the_page, watch.url, seat) for seat in people]
            reading = asyncio.gather(*pages)
            result = await play(task, people, EvaluationSettings(), seed=3, tell=watch.tell)
            await reading
        return result

    result = asyncio.run(asyncio.wait_for(run(), 600))
    assert result.metrics["payoff_player_0"] == 1.0 and result.metrics["payoff_player_1"] == -1.0
    during = {seat: _until_the_end(events) for seat, events in seen.items()}
    for seat, events in during.items():
        shown = [event["observations"] for event in events if event["kind"] == "observed"]
        assert {name for one in shown for name in one} == {seat}
        assert {e["agent"] for e in events if e["kind"] in ("asked", "acted")} == {seat}
        assert not any(event.get("picture") or event.get("world") for event in events)
    assert '"player_1": "' not in json.dumps(during["player_0"][2:])
    after = seen["player_0"][len(during["player_0"]) :]
    revealed = [event["observations"] for event in after if event["kind"] == "observed"]
    assert [list(one) for one in revealed] == [["player_0"], ["player_1"], []]
    assert revealed[1]["player_1"].endswith("player_0 bet say pass or bet")
    assert after[-2]["kind"] == "ended"


def _until_the_end(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events before those of the reveal: up to the second first observation."""
    starts = [n for n, e in enumerate(events) if e["kind"] == "observed" and e["turn"] == 0]
    return events[: starts[1]]


def test_an_item_that_holds_the_answer_is_withheld() -> None:
    log = [{"kind": "planned", "agents": {}, "items": ["Problem(answer=7)"]}]
    log.append({"kind": "started", "episode": 0, "item": "Problem(answer=7)"})
    told = [event for index in range(2) for event in seen_from("ada", log, index)]
    assert len(told) == 2 and "7" not in json.dumps(told)


def test_a_page_without_a_seat_tells_nothing_where_a_person_plays() -> None:
    watch = Watch("notes", 0, {"ada": Person()})
    page = TestClient(watch_app(watch), base_url="http://127.0.0.1")
    assert page.get("/events").status_code == 404
    assert page.get("/events", params={"seat": "ben"}).status_code == 404
    assert page.get("/", follow_redirects=False).headers["location"].endswith("/?seat=ada")
    watch.socket.close()


def test_a_seat_without_a_page_is_one_line() -> None:
    seats = [f"--agent=builder_{n}=person" for n in (1, 2)]
    result = CliRunner().invoke(app, ["play", "str_build", *seats])
    assert isinstance(result.exception, ConfigError)
    assert "add --watch" in str(result.exception)


def test_an_address_may_be_a_person() -> None:
    config = load_config({"task": {"name": "str_build"}, "models": {}})
    team = make_team(config, ("a", "b"), ["a=person", "b=http://127.0.0.1:1"])
    assert isinstance(team["a"], Person) and isinstance(team["b"], AsyncRemoteAgent)
