"""The pages in a real browser: what they show, what their console says, what stays text."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser, needs_chromium
from exported import export_tiny, serving_here
from scripted_endpoint import ScriptedEndpoint, status
from tiny import Notes, Scene
from watched_page import WatchedPage

from colearn.config import EvaluationSettings
from colearn.contract.picture import Cell, Panel, Picture
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.deploy.export import read_manifest
from colearn.deploy.play import play
from colearn.deploy.play.watch import Watch, watched
from colearn.runs.record.checksums import write_checksums
from colearn.text.reasoning import AnswerStream

pytestmark = needs_chromium

HOSTILE = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)> &lt; </pre>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium: Page) -> Page:
    """The browser's page, empty, its console too."""
    chromium.open("about:blank")
    chromium.size(1100, 900)
    chromium.complaints.clear()
    return chromium


class World(Notes):
    """Notes with a world to look at."""

    def render(self, state: Scene) -> str:
        return "\n".join(["#" * (2 + len(state.said)), "..", HOSTILE])


class Showing(WatchedPage):
    """A play of remote agents."""

    def __init__(
        self, servers: Mapping[str, ScriptedEndpoint], task: Notes, **settings: Any
    ) -> None:
        super().__init__()
        self.servers, self.task, self.settings = servers, task, settings

    async def _show(self) -> None:
        async with watched("notes", 0) as page:
            self._opened(page.url)
            await self._happen(page)
            await self._left()

    async def _happen(self, page: Watch) -> None:
        agents = {
            name: AsyncRemoteAgent(server.url, name=name, timeout=600.0)
            for name, server in self.servers.items()
        }
        settings = EvaluationSettings(**self.settings)
        await play(self.task, agents, settings, seed=3, at_once=1, tell=page.tell)


class Told(Showing):
    """A page that hears of two agents and one world, as data that may be anything."""

    def __init__(self, world: Any) -> None:
        super().__init__({}, Notes())
        self.world = world

    async def _happen(self, page: Watch) -> None:
        page.tell({"kind": "planned", "agents": {"ada": "", "ben": ""}, "items": ["one"]})
        page.tell({"kind": "started", "episode": 0, "item": "one"})
        seen = {"turn": 0, "observations": {}, "picture": "as text", "world": self.world}
        page.tell({"kind": "observed", "episode": 0, **seen})


@pytest.fixture
def servers() -> Iterator[dict[str, ScriptedEndpoint]]:
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(ScriptedEndpoint(name=name).serving())
            for name in ("ada", "ben")
        }


def test_the_page_shows_every_agents_own_view_side_by_side(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    task = Notes(clues=(("for ada", "for ben"),), horizon=2)
    with Showing(servers, task) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        text = page.text()
        boxes = page.value(
            "[...document.querySelectorAll('.turn')[0].querySelectorAll('.agent')]"
            ".map(e => [e.getBoundingClientRect().top, e.getBoundingClientRect().left,"
            " e.innerText])"
        )
    (top, left, ada), (other_top, other_left, ben) = boxes
    assert top == other_top and left < other_left
    assert "for ada" in ada and "2 words, seed" in ada and "for ben" not in ada
    assert "for ben" in ben and "2 words, seed" in ben and "for ada" not in ben
    assert "1 of 1 episodes played" in text and "Turn 2" in text and "reward" in text
    assert page.complaints == []


def test_an_action_appears_while_the_others_still_think(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    gate = threading.Event()
    servers["ben"].faults = [lambda server: _after(gate)]
    with Showing(servers, World(horizon=1), episodes=1) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('words, seed')")
        assert page.value("document.querySelectorAll('.thinking').length") == 1
        assert "1 under way" in page.text()
        gate.set()
        page.wait("document.querySelectorAll('.thinking').length === 0")
    assert page.complaints == []


def _after(gate: threading.Event) -> None:
    assert gate.wait(600)


def test_whoever_comes_late_sees_the_episodes_from_the_start(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    with Showing(servers, World()) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        page.open("about:blank")
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        page.value("document.querySelector('#episodes button').click()")
        page.wait("document.querySelector('#episode h2').innerText.startsWith('Episode 0')")
        assert page.value("document.querySelectorAll('.turn').length") == 3
        assert page.value("document.querySelector('.picture').textContent").startswith("#####\n..")
    assert page.complaints == []


def test_a_lost_episode_is_marked_with_its_reason(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    servers["ben"].faults = [status(400, f"too long {HOSTILE}")]
    with Showing(servers, World()) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        assert "3 of 4 episodes played; 1 lost" in page.text()
        page.value("document.querySelector('#episodes button.lost').click()")
        page.wait("document.querySelector('.lossline') !== null")
        line = page.value("document.querySelector('.lossline').textContent")
    assert line.startswith("Lost in turn 1: agent 'ben' at ") and "too long <script>" in line
    assert page.complaints == []


def test_hostile_text_of_tasks_and_agents_stays_text(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    servers["ada"].speak = lambda messages, seed: HOSTILE
    with Showing(servers, World(clues=((HOSTILE, "plain"),))) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        assert page.value("document.querySelector('.observation').textContent") == HOSTILE
        assert page.value("document.querySelector('.action').textContent") == HOSTILE
        assert page.value("document.querySelector('.picture').textContent").endswith(HOSTILE)
        assert page.value("document.querySelectorAll('script, img').length") == 1
        assert page.value("document.title") == "colearn play notes"
    assert page.complaints == []


def small_world() -> Picture:
    """Two layers: a target beside what was built, and a panel of a kind without a colour."""
    built = {
        (0, 0): Cell("stone", "ada"),
        (1, 0): Cell("oak", "ben", "wrong"),
        (2, 1): Cell("oak", "ben", "extra"),
        (0, 1): Cell("stone", mark="missing"),
    }
    target = Panel("target", 3, 2, {(0, 0): Cell("stone"), (0, 1): Cell()})
    return Picture(
        groups=((target, Panel("built", 3, 2, built)), (Panel("above", 1, 1, {}),)),
        colours={"stone": "#777777"},
        caption=HOSTILE,
    )


def test_the_world_is_drawn_with_kinds_agents_and_marks(page: Page) -> None:
    """Ada is the page's first agent, blue; ben the second, orange with dark digits."""
    with Told(small_world().plain()) as showing:
        page.open(showing.url)
        page.wait("document.querySelector('.now figure') !== null")
        groups = page.value(
            "[...document.querySelectorAll('.group')].map(g => g.querySelectorAll('svg').length)"
        )
        built = "document.querySelectorAll('.panel svg')[1]"
        fills = page.value(
            f"[...{built}.querySelectorAll('.block')]"
            ".map(e => [e.getAttribute('fill'), e.classList.contains('absent'),"
            " e.getAttribute('d').split('M').length - 1])"
        )
        discs = page.value(
            f"[...{built}.querySelectorAll('.disc')].map(e => e.getAttribute('stroke'))"
        )
        digits = page.value(f"[...{built}.querySelectorAll('text')].map(e => e.textContent)")
        told = page.value(f"{built}.getAttribute('aria-label')")
        legend = page.value(
            "[...document.querySelectorAll('.legend span')].map(e => e.lastChild.data)"
        )
        assert page.value("document.querySelector('figcaption').textContent") == HOSTILE
        assert page.value("document.querySelectorAll('script, img').length") == 1
    assert groups == [2, 1]
    assert fills == [["#777777", False, 1], ["#777777", True, 1], ["#4c9f70", False, 2]]
    assert discs == ["#0072b2", "#d55e00"] and digits == ["1", "22"]
    assert told == "built: 3 cells filled, 1 missing, 1 extra, 1 wrong"
    assert legend[:4] == ["stone", "oak", "ada", "ben"] and len(legend) == 7
    assert page.complaints == []


def _panel(**entries: Any) -> dict[str, Any]:
    """A plain picture whose only panel is otherwise than it should be."""
    panel = {"title": "built", "size": [1, 1], "cells": [], **entries}
    return {**small_world().plain(), "groups": [[panel]]}


NO_PICTURES = [
    "a text",
    {},
    _panel(size=[1001, 1]),
    _panel(size=[1, "1"]),
    _panel(size=[1e300, 1]),
    _panel(cells=[[1, 0, 0, 0, ""]]),
    _panel(cells=[[0, 0, 9, 0, ""]]),
    _panel(cells=[[0, 0, 0, 0, "constructor"]]),
    _panel(title={"x": 1}),
    {**small_world().plain(), "colours": {"stone": "red;background:url(x)"}},
    {**small_world().plain(), "colours": {"stone": "#777777\n"}},
]


def test_a_world_that_is_no_picture_is_left_to_the_text(page: Page) -> None:
    with Told(NO_PICTURES[2]) as showing:
        page.open(showing.url)
        page.wait("document.querySelector('pre.picture') !== null")
        assert page.value("document.querySelector('.now pre').textContent") == "as text"
        assert page.value("document.querySelectorAll('figure, svg').length") == 0
        worlds = json.dumps([*NO_PICTURES, small_world().plain()])
        read = page.value(
            "import('/page/world.js').then(module =>"
            f" {worlds}.map(world => module.readWorld(world) === null))"
        )
    assert read == [*([True] * len(NO_PICTURES)), False]
    assert page.complaints == []


def test_the_world_after_each_turn_is_drawn_from_a_real_play(
    page: Page, servers: dict[str, ScriptedEndpoint]
) -> None:
    class Drawn(World):
        def picture(self, state: Scene) -> Picture:
            cells = {(x, 0): Cell(owner="ada") for x in range(len(state.said))}
            return Picture(groups=((Panel("said", 4, 1, cells),),))

    with Showing(servers, Drawn(horizon=3), episodes=1) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        shown = page.value(
            "[...document.querySelectorAll('.now svg[role], details svg[role]')]"
            ".map(e => e.getAttribute('aria-label'))"
        )
        assert page.value("document.querySelectorAll('pre.picture').length") == 0
    assert shown == ["said: 3 cells filled", "said: 1 cells filled", "said: 2 cells filled"]
    assert page.complaints == []


def test_the_page_fits_its_window(page: Page, servers: dict[str, ScriptedEndpoint]) -> None:
    """Also with a wide world and long words."""

    class Wide(World):
        def picture(self, state: Scene) -> Picture:
            cells = {(x, 0): Cell("stone", "ada") for x in range(100)}
            return Picture(groups=((Panel("wide", 100, 2, cells),),))

    page.size(360, 800, dark=True)
    servers["ada"].speak = lambda messages, seed: "x" * 500
    with Showing(servers, Wide(horizon=1)) as showing:
        page.open(showing.url)
        page.wait("document.body.innerText.includes('the play is over')")
        assert page.value("document.querySelectorAll('figure').length") > 0
        for width in (360, 700, 1400):
            page.size(width, 800, dark=True)
            assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(15, 17, 20)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that was trained on a task of a hostile name."""
    folder = export_tiny(tmp_path_factory.mktemp("page") / "ada", end_scale=0, max_tokens=9)
    read_manifest(folder).model_copy(update={"task": HOSTILE}).write(folder)
    write_checksums(folder)
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving_here(folder) as server:
        yield server.url


def say(page: Page, text: str) -> None:
    page.value(f"document.getElementById('text').value = {json.dumps(text)}")
    page.value("document.getElementById('send').click()")


def test_the_agents_page_shows_its_card_on_a_phone_too(page: Page, url: str) -> None:
    page.open(url)
    page.wait("document.getElementById('numbers').children.length > 0")
    assert page.value("document.querySelector('h1').textContent") == "ada"
    assert HOSTILE in page.value("document.getElementById('card').textContent")
    page.size(360, 700)
    assert page.value("document.documentElement.scrollWidth") <= 360
    assert page.complaints == []


def test_one_talks_to_the_agent_in_a_session_and_starts_anew(
    page: Page, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile(AnswerStream):
        def push(self, part: str) -> str:
            return HOSTILE if super().push(part) else ""

    monkeypatch.setattr("colearn.deploy.serve.completion.AnswerStream", Hostile)
    page.open(url)
    page.wait("document.querySelector('h1').textContent === 'ada'")
    page.value("document.getElementById('greedy').checked = true")  # a sampled end is earlier
    for number in (1, 2):
        say(page, HOSTILE)
        page.wait(f"document.querySelectorAll('.said.assistant small').length === {number}")
        page.wait("!document.getElementById('send').disabled")
    said = page.value("[...document.querySelectorAll('.said pre')].map(e => e.textContent)")
    assert [said[0], said[2]] == [HOSTILE, HOSTILE]
    assert said[1].startswith(HOSTILE) and said[3].startswith(HOSTILE)
    costs = page.value(
        "[...document.querySelectorAll('.said.assistant small')].map(e => e.innerText)"
    )
    assert all(cost.startswith("9 tokens, first after") for cost in costs)
    first, second = (re.findall(r"(\d+) of (\d+) read anew", cost)[0] for cost in costs)
    assert first[0] == first[1] and int(second[0]) < int(second[1])
    page.value("poll()")
    shown = page.value("[...document.querySelectorAll('#numbers > *')].map(e => e.textContent)")
    numbers = dict(zip(shown[::2], shown[1::2], strict=True))
    assert (numbers["sessions"], numbers["generated tokens"]) == ("1", "18")
    assert numbers["request duration seconds"].endswith(" (mean of 2)")
    page.value("document.getElementById('anew').click()")
    say(page, "hi")
    page.wait("document.querySelectorAll('.said.assistant').length === 1")
    page.wait("!document.getElementById('send').disabled")
    page.value("poll()")
    numbers = page.value("document.getElementById('numbers').innerText")
    assert "sessions\n1\n" in numbers  # the first one is deleted
    assert page.value("document.querySelectorAll('script, img').length") == 1
    assert page.complaints == []


def test_a_servers_refusal_is_shown(page: Page, url: str) -> None:
    page.open(url)
    page.wait("document.querySelector('h1').textContent === 'ada'")
    say(page, "x" * 2000)
    page.wait("document.querySelector('.trouble')?.textContent.includes('exceed the context')")
    assert not page.value("document.getElementById('send').disabled")


def test_a_server_with_a_token_asks_for_it(page: Page, folder: Path) -> None:
    with serving_here(folder, token="s3cret") as server:
        page.open(server.url)
        page.wait("!document.getElementById('locked').hidden")
        page.value("document.getElementById('token').value = 's3cret'")
        page.value("document.querySelector('#token-form button').click()")
        page.wait("document.querySelector('h1').textContent === 'ada'")
        assert page.value("document.getElementById('locked').hidden")
