"""Streams of the gateway: an answer's text arrives while its tokens are sampled."""

from __future__ import annotations

import pytest

from colearn.contract.types import Action
from colearn.programs.gateway.task import Gateway
from colearn.rollout.agents import AgentSpec, ChatFormat, language_players
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, Parallel
from tests.helpers.gateway_programs import opened
from tests.helpers.scripted_voice import Scripted
from tests.helpers.streaming_programs import RECEIVED, TEXTS
from tests.helpers.tiny import byte_tokenizer, cast


class Halting(Scripted):
    """Says the parts of its text, each only when the program has received something."""

    def __init__(self, *parts):
        super().__init__(Action("".join(parts), (5, 6), (-1.0, -1.0), "end"))
        self.parts = parts

    def generate(self, requests):
        (request,) = requests
        RECEIVED.clear()
        for part in self.parts:
            request.listener(part)
            assert RECEIVED.wait(20), f"{part!r} has not arrived"
        return super().generate(requests)


@pytest.fixture(autouse=True)
def _nothing_read():
    TEXTS.clear()


def gateway(play):
    target = f"tests.helpers.streaming_programs:{play}"
    items = "tests.helpers.gateway_programs:items"
    return opened(Gateway(("one", "two"), items, play=target, horizon=4))


def played(play, players, shape=None):
    trees, _ = grow(gateway(play), ["owl"], players, shape or Chain(), seed=0, order="free")
    return trees


def scripted(*parts):
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    return language_players(Halting(*parts), {"one": voice, "two": voice})


def test_a_part_arrives_before_the_next_one_is_sampled():
    played("reads", scripted("he", "llo"))
    assert TEXTS == [["he", "llo"], ["he", "llo"]]


def test_a_text_that_may_be_a_stop_is_held_back_and_cut():
    played("stops", scripted("hello w", "orld"))
    assert TEXTS == [["hello "]]


def test_streamed_answers_are_the_ids_that_are_sampled_without_streams():
    def ids(play):
        (tree,) = played(play, cast(("one", "two"), max_tokens=12).players)
        return [action.tokens for node in tree.nodes for action in node.actions.values()]

    streamed = ids("reads")
    assert max(len(parts) for parts in TEXTS) > 1
    assert streamed == ids("waits")
    assert len(streamed) == 2


def test_streams_of_branches_that_are_sampled_together_arrive_whole():
    """Their first answers are drawn at once, before the branches have programs of their own."""
    (tree,) = played("reads", cast(("one", "two"), max_tokens=12).players, Parallel(k=2))
    firsts = {node.actions["one"].text for node in tree.nodes if node.turn == 1}
    assert firsts <= {"".join(parts) for parts in TEXTS}
    assert len(TEXTS) == 4


def test_reasoning_is_not_streamed():
    class Thinking(Scripted):
        def generate(self, requests):
            (request,) = requests
            for part in ("<thi", "nk>he", "llo</think>", "\nb", "ye"):
                request.listener(part)
            return super().generate(requests)

    said = Thinking(Action("<think>hello</think>\nbye", (5, 6), (-1.0, -1.0), "end"))
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    played("reads", language_players(said, {"one": voice, "two": voice}))
    assert ["".join(parts) for parts in TEXTS] == ["bye", "bye"]
