"""KV caches of histories: found by the history, and never needed for the same values."""

from __future__ import annotations

from typing import Any

import pytest
from asking import token_request
from tiny import Cast, cast

from colearn.contract import TokenAnswer, TokenHistory
from colearn.engines.kinds import Transformers
from colearn.engines.transformers import TransformersEngine
from colearn.errors import ConfigError

OPENING, MORE = tuple(range(10, 40)), (50, 51, 52)


@pytest.fixture
def team() -> Cast:
    return cast(("ada",), max_tokens=6)


def engine(team: Cast, **settings: Any) -> TransformersEngine:
    return TransformersEngine(team.bases["ada"], team.voices, **settings)


def answered(
    one: TransformersEngine, team: Cast, before: TokenHistory | None, *seeds: int
) -> tuple[list[TokenAnswer], int]:
    """The answers after `before`, and how many tokens were prefilled for them."""
    prefilled = one.prefilled_tokens
    tokens = OPENING if before is None else MORE
    (answers,) = one.generate([token_request(team.voices, "ada", tokens, seeds, continues=before)])
    return answers, one.prefilled_tokens - prefilled


def test_a_cache_lives_as_long_as_its_history(team: Cast) -> None:
    one = engine(team)
    answers, _ = answered(one, team, None, 1, 2)
    assert len(one._decoder.prefixes) == 2
    del answers[0]
    assert len(one._decoder.prefixes) == 1


def test_new_weights_empty_the_cache(team: Cast) -> None:
    one = engine(team)
    (first,), _ = answered(one, team, None, 1)
    _, kept = answered(one, team, first.history, 2)
    team.bases["ada"].revision += 1
    _, anew = answered(one, team, first.history, 2)
    assert (kept, anew) == (1 + len(MORE), len(first.history) + len(MORE))


def test_what_new_weights_compute_is_kept(team: Cast) -> None:
    one = engine(team)
    (first,), _ = answered(one, team, None, 1)
    team.bases["ada"].revision += 1
    (second,), _ = answered(one, team, first.history, 2)
    _, kept = answered(one, team, second.history, 3)
    assert kept == 1 + len(MORE)


def test_a_history_without_its_cache_draws_the_same(team: Cast) -> None:
    """An equal history is another object, of which no cache is known."""
    one = engine(team)
    (first,), _ = answered(one, team, None, 1)
    equal = TokenHistory(first.history.ids, first.history.turns)
    with_cache, _ = answered(one, team, first.history, 2, 3)
    without, prefilled = answered(one, team, equal, 2, 3)
    assert prefilled == len(equal) + len(MORE)
    for mine, other in zip(with_cache, without, strict=True):
        assert mine.action.tokens == other.action.tokens
        assert mine.action.logprobs == pytest.approx(other.action.logprobs, abs=1e-5)


def test_a_cache_of_another_adapter_is_not_used() -> None:
    team = cast(("ada", "ben"), lora={"ada": "one", "ben": "two"}, max_tokens=6)
    one = TransformersEngine(team.bases["ada"], team.voices)
    (first,), _ = answered(one, team, None, 1)
    prefilled = one.prefilled_tokens
    one.generate([token_request(team.voices, "ben", MORE, (2,), continues=first.history)])
    assert one.prefilled_tokens - prefilled == len(first.history) + len(MORE)


def test_a_bound_evicts_the_oldest_and_changes_no_draw(team: Cast) -> None:
    free, bounded = engine(team), engine(team, cache_bytes=1)
    (first,), _ = answered(free, team, None, 1)
    (again,), _ = answered(bounded, team, None, 1)
    assert bounded._decoder.prefixes.evicted == 1 and not len(bounded._decoder.prefixes)
    later, _ = answered(free, team, first.history, 2, 3)
    anew, prefilled = answered(bounded, team, again.history, 2, 3)
    assert prefilled == len(again.history) + len(MORE)
    assert [one.action.tokens for one in later] == [one.action.tokens for one in anew]


def test_a_bound_that_holds_everything_is_never_reached(team: Cast) -> None:
    one = engine(team, cache_bytes=2**30)
    (first,), _ = answered(one, team, None, 1)
    _, prefilled = answered(one, team, first.history, 2)
    assert prefilled == 1 + len(MORE) and not one._decoder.prefixes.evicted


@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_a_bound_of_nothing_is_refused(bound: float) -> None:
    with pytest.raises(ConfigError, match=r"^cache_gib: must be above 0"):
        Transformers(cache_gib=bound)
