"""Requests of all live episodes of a gateway join one batch."""

from __future__ import annotations

import asyncio

from colearn.contract.types import Action
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from tests.helpers.gateway_programs import gateway
from tests.helpers.scripted_voice import Scripted, language_players
from tests.helpers.tiny import byte_tokenizer


class Last(Scripted):
    """Answers the first request only after others, which join it, have been answered."""

    def __init__(self, others: int) -> None:
        super().__init__(Action("yes", (5, 6), (-1.0, -1.0), "end"))
        self.others, self.joined = others, -1
        self.answered = asyncio.Event()

    async def submit(self, request):
        self.joined += 1
        if self.joined == 0:
            await asyncio.wait_for(self.answered.wait(), 600)
            self.before_the_first = self.joined
        elif self.joined == self.others:
            self.answered.set()
        return await super().submit(request)


def test_requests_of_other_episodes_join_the_batch_of_an_unfinished_answer():
    """Two episodes of three requests: all of one are answered while the other's first decodes."""
    generator, voice = Last(others=3), AgentSpec(chat=ChatFormat(byte_tokenizer()))
    players = language_players(generator, {"one": voice, "two": voice})
    items = ["owl", "bee"]
    trees, _ = grow(gateway("relay"), items, players, Chain(), seed=0, order="free")
    assert generator.before_the_first == 3
    assert [len(tree.nodes) for tree in trees] == [4, 4]
    assert all(tree.nodes[-1].metrics["failed"] == 0.0 for tree in trees)
