"""Live games that tasks keep between steps."""

from __future__ import annotations

import multiprocessing

from colearn.tasks.live_games import LiveGames


def test_a_game_that_is_taken_is_no_longer_kept() -> None:
    games = LiveGames[str, list[int]]()
    games.keep("ab", [1])
    assert games.take("ab") == [1]
    assert games.take("ab") is None


def test_the_game_kept_longest_is_ended_for_the_257th() -> None:
    ended: list[int] = []
    games = LiveGames[int, int](ended.append)
    for play in range(258):
        games.keep(play, 10 * play)
    assert ended == [0, 10]
    assert games.take(1) is None
    assert games.take(2) == 20


def test_the_game_kept_longest_may_be_dropped_at_once() -> None:
    ended: list[int] = []
    games = LiveGames[int, int](ended.append)
    games.keep(1, 10)
    games.keep(2, 20)
    assert games.drop() and ended == [10]
    assert games.drop() and not games.drop()


GAMES = LiveGames[int, int]()


def test_a_forked_process_drops_no_game_of_its_parent() -> None:
    GAMES.keep(1, 10)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert not pool.apply(_dropped)
    assert GAMES.drop()


def _dropped() -> bool:
    return GAMES.drop()
