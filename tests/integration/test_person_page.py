"""A person's page in a real browser: the own seat alone during a hand, all of it at the end, and
the next hand by a button."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from browser import Page, browser, needs_chromium
from scripted_endpoint import ScriptedEndpoint
from watched_page import WatchedPage

from colearn.config import EvaluationSettings
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.deploy.play import Person, play
from colearn.deploy.play.watch import watched
from colearn.tasks.open_spiel import OpenSpiel

pytestmark = needs_chromium

BUTTON = "document.querySelector('#episode button.next')"
HAND = "document.querySelector('#episode h2').innerText"
OWN_CARD, RIVALS_CARD = "player_0 card", "player_1 card"
"""How the game tells who holds what."""


class Hands(WatchedPage):
    """Hands of Kuhn poker: the person is player 0, a server player 1 that always passes. The play
    may be broken off."""

    def __init__(self, hands: int) -> None:
        super().__init__()
        self.hands = hands

    async def _show(self) -> None:
        person, task = Person(), OpenSpiel(games="kuhn_poker", prompt="compact")
        with ScriptedEndpoint(name="player_1", speak=lambda *_: "pass").serving() as server:
            team = {"player_0": person, "player_1": AsyncRemoteAgent(server.url, name="player_1")}
            async with watched("kuhn poker", 0, {"player_0": person}) as page:
                settings = EvaluationSettings(episodes=self.hands)
                playing = asyncio.create_task(
                    play(task, team, settings, seed=3, at_once=1, tell=page.tell)
                )
                self._opened(page.url)
                await self._left()
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium: Page) -> Page:
    chromium.open("about:blank")
    chromium.complaints.clear()
    return chromium


def asked(page: Page) -> None:
    page.wait("document.querySelector('form.answer textarea') !== null")


def say(page: Page, text: str) -> None:
    asked(page)
    page.value(f"document.querySelector('form.answer textarea').value = {text!r}")
    page.value("document.querySelector('form.answer button').click()")


def test_the_rivals_card_is_shown_at_the_end_of_a_hand_and_not_before(page: Page) -> None:
    with Hands(1) as playing:
        page.open(playing.url)
        asked(page)
        before = page.text()
        say(page, "bet")
        page.wait("document.body.innerText.includes('the play is over')")
        after = page.text()
    assert OWN_CARD in before and RIVALS_CARD not in before
    assert OWN_CARD in after and RIVALS_CARD in after
    assert page.complaints == []


def test_a_hand_that_has_ended_stays_until_the_person_goes_on_to_the_next(page: Page) -> None:
    with Hands(2) as playing:
        page.open(playing.url)
        say(page, "bet")
        page.wait(f"{BUTTON} !== null")  # the next hand has begun, and its first turn is asked
        page.wait("document.body.innerText.includes('1 under way')")
        assert page.value(HAND).startswith("Episode 0")
        assert RIVALS_CARD in page.text()
        assert page.value("document.querySelector('form.answer')") is None
        page.value(f"{BUTTON}.click()")
        page.wait(f"{HAND}.startsWith('Episode 1')")
        asked(page)
        assert RIVALS_CARD not in page.text() and page.value(BUTTON) is None
        say(page, "bet")
        page.wait("document.body.innerText.includes('the play is over')")
    assert page.complaints == []
