"""Histories and sessions as the server keeps them."""

from __future__ import annotations

import weakref

import pytest

from colearn.contract import TokenHistory, WindowExceeded
from colearn.contract.types import Action
from colearn.deploy.client.protocol.conversation import SentConversation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.serve.sessions import ServedSession, Sessions


def test_each_turn_sees_what_its_window_left() -> None:
    history = TokenHistory().observe(range(4), 6).act(range(2)).observe(range(3), 6).act(range(1))
    # o_0 a_0 fill 0..5 under 0; at o_1's end 9 positions are known, of which 6 stay
    assert history.visibility(0) == [0] * 6 + [3] * 4
    assert history.visibility(5) == [0] + [3] * 4


def test_a_window_never_sees_more_again() -> None:
    history = TokenHistory().observe(range(5), 5).act(range(9)).observe(range(1), 5)
    assert history.observe(range(1), None).visible_from == history.visible_from == 10


def test_an_observation_beyond_the_window_is_refused() -> None:
    with pytest.raises(WindowExceeded, match="7 new tokens exceed"):
        TokenHistory().observe(range(7), 6)


def sessions(most: int = 2, idle: float = 0.0) -> Sessions:
    return Sessions(most, idle)


def play(
    held: Sessions, name: str, said: str, answer: str = "yes", *turns: tuple[str, str]
) -> ServedSession:
    conversation = SentConversation(None, turns, said)
    session = held.begin(name, conversation)
    history = session.history.observe(range(3), None).act([7])
    held.commit(session, conversation, history, Action("", (7,)), answer)
    held.end(name, session)
    return session


def test_a_session_grows_by_its_turns() -> None:
    held = sessions()
    play(held, "a", "hello")
    session = play(held, "a", "more", "no", ("hello", "yes"))
    assert (session.turns, len(session.history)) == (2, 8)


@pytest.mark.parametrize("turns", ([("hello", "no")], [("hell", "oyes")], [("a", "b"), ("c", "d")]))
def test_other_words_are_a_conflict(turns: list[tuple[str, str]]) -> None:
    held = sessions()
    play(held, "a", "hello")
    with pytest.raises(ServeError) as refused:
        held.begin("a", SentConversation(None, tuple(turns), "more"))
    assert (refused.value.status, refused.value.code) == (409, "session_conflict")


def test_a_turn_that_was_given_up_leaves_no_trace() -> None:
    held = sessions()
    session = play(held, "a", "hello")
    held.end("a", held.begin("a", SentConversation(None, (), "lost")))
    assert session.turns == 1
    first = held.begin("b", SentConversation(None, (), "lost"))
    held.end("b", first)
    assert len(held) == 1


def test_the_least_recently_used_session_makes_room() -> None:
    held = sessions()
    old = {name: weakref.ref(play(held, name, "hello").history) for name in "ab"}
    play(held, "a", "again")
    play(held, "c", "hello")
    with pytest.raises(ServeError, match="no such session"):
        held.forget("b")
    assert old["b"]() is None, "whose KV cache goes with it"
    held.forget("a")


def test_sessions_in_use_make_no_room() -> None:
    held = sessions(idle=100.0)
    for name in "ab":
        play(held, name, "hello")
    with pytest.raises(ServeError) as refused:
        held.begin("c", SentConversation(None, (), "hello"))
    assert (refused.value.status, refused.value.headers) == (429, {"retry-after": "100"})
