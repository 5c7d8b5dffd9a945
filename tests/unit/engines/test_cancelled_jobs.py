"""Answers that nobody waits for any more: they cost no further pass, and change no other answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from asking import token_request
from tiny import Cast, cast

from colearn.deploy.serve.service import Service
from colearn.engines.decoder import Decoder
from colearn.engines.job import ChoiceEnd, Done, Job, TokenDrawn

LENGTH = 6


@pytest.fixture(scope="module")
def team() -> Cast:
    """One agent, whose actions end at their length alone."""
    team = cast(("ada",), max_tokens=LENGTH)
    team.voices["ada"].chat.end_ids = frozenset()
    return team


def engine_of(team: Cast, **limits: int) -> Decoder:
    return Decoder(team.bases["ada"], **limits)


def job(team: Cast, *seeds: int, prompt: int = 5) -> Job:
    request = token_request(team.voices, "ada", range(prompt), seeds)
    return Job(request, team.voices["ada"].chat, streams=True)


def alone(team: Cast, *seeds: int, prompt: int = 5) -> list[list[int]]:
    one, engine = job(team, *seeds, prompt=prompt), engine_of(team)
    engine.submit(one)
    while engine.busy:
        engine.step()
    return tokens(one)


def tokens(one: Job) -> list[list[int]]:
    return [list(choice.tokens) for choice in one.choices]


def finish(engine: Decoder, most: int = 40) -> int:
    """The number of steps to the end."""
    for steps in range(most):
        if not engine.busy:
            return steps
        engine.step()
    raise AssertionError("the engine goes on")


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("after", [1, 3])
def test_a_cancelled_answer_is_decoded_no_further_and_changes_no_other(
    team: Cast, rows: int, after: int
) -> None:
    engine = engine_of(team)
    gone, stays = job(team, *range(rows)), job(team, 7, 8, prompt=9)
    for one in (gone, stays):
        engine.submit(one)
    for _ in range(after):
        engine.step()
    gone.cancelled = True
    before = [len(each) for each in tokens(gone)]
    engine.step()
    assert engine.running == 2  # its rows are free within a step
    finish(engine)
    assert all(len(each) <= n + 1 for each, n in zip(tokens(gone), before, strict=True))
    assert tokens(stays) == alone(team, 7, 8, prompt=9)


def events(engine: Decoder, of: Job) -> Sequence[object]:
    return [event for one, event in engine.take_events() if one is of]


def test_a_cancelled_answer_never_ends_and_is_not_counted(team: Cast) -> None:
    engine = engine_of(team)
    gone, stays = job(team, 1), job(team, 2)
    for one in (gone, stays):
        engine.submit(one)
    engine.step()
    gone.cancelled = True
    finish(engine)
    told = engine.take_events()
    ends = [one for one, event in told if isinstance(event, ChoiceEnd | Done)]
    assert ends == [stays, stays] and engine.completed == 1
    assert gone.choices[0].history is None  # nothing continues from half of an answer


def test_an_answer_that_is_cancelled_while_it_waits_costs_nothing(team: Cast) -> None:
    engine = engine_of(team, max_rows=1)
    first, gone, last = job(team, 1), job(team, 2, prompt=9), job(team, 3)
    for one in (first, gone, last):
        engine.submit(one)
    engine.step()
    assert (engine.running, engine.waiting) == (1, 2)
    gone.cancelled = True
    finish(engine)
    assert tokens(gone) == [[]] and gone.prefilled == 0
    assert tokens(last) == alone(team, 3)
    assert not [event for one, event in engine.take_events() if one is gone]


def test_the_row_of_a_cancelled_answer_is_the_next_one_s_at_once(team: Cast) -> None:
    engine = engine_of(team, max_rows=1)
    gone, waits = job(team, 1), job(team, 2)
    for one in (gone, waits):
        engine.submit(one)
    engine.step()
    gone.cancelled = True
    # one step that frees the row, and one for each token of the answer that waited
    assert finish(engine) == 1 + LENGTH - 1
    assert tokens(waits) == alone(team, 2)


def test_a_long_prompt_is_read_to_its_end_only_while_somebody_waits_for_it(team: Cast) -> None:
    engine = engine_of(team, piece=4)
    gone, stays = job(team, 1, prompt=40), job(team, 2, prompt=40)
    for one in (gone, stays):
        engine.submit(one)
    engine.step()
    gone.cancelled = True
    finish(engine)
    assert tokens(gone) == [[]] and tokens(stays) == alone(team, 2, prompt=40)
    both = engine_of(team, piece=4)
    ended = [job(team, n, prompt=40) for n in (1, 2)]
    for one in ended:
        both.submit(one)
    both.step()
    for one in ended:
        one.cancelled = True
    both.step()
    assert not both.busy


def test_a_stream_that_is_cancelled_is_told_nothing_more_than_a_token(team: Cast) -> None:
    engine = engine_of(team)
    gone = job(team, 1)
    engine.submit(gone)
    engine.step()
    engine.take_events()
    gone.cancelled = True
    finish(engine)
    told = events(engine, gone)
    assert len(told) <= 1 and all(isinstance(event, TokenDrawn) for event in told)


def test_an_answer_that_its_caller_has_given_up_is_cancelled_and_one_that_came_is_not(
    team: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    (generator,) = team.generators.values()
    request = token_request(team.voices, "ada", range(5), (1,))
    jobs: list[Job] = []
    monkeypatch.setattr(generator._tick, "add", jobs.append)

    async def both() -> None:
        given_up, answered = [asyncio.create_task(generator.submit(request)) for _ in range(2)]
        await asyncio.sleep(0)
        given_up.cancel()
        assert jobs[1].answer is not None
        jobs[1].answer.set_result([])
        await asyncio.gather(given_up, answered, return_exceptions=True)

    asyncio.run(both())
    assert [one.cancelled for one in jobs] == [True, False]


@pytest.mark.parametrize("committed", [False, True])
def test_a_served_answer_whose_client_has_gone_is_cancelled(team: Cast, committed: bool) -> None:
    one, freed = job(team, 1), list[str]()
    service: Any = SimpleNamespace(
        turns=3, sessions=SimpleNamespace(end=lambda name, session: freed.append(name))
    )
    turn: Any = SimpleNamespace(
        job=one, committed=committed, session=object(), asked=SimpleNamespace(session_id="mine")
    )
    Service.end(service, turn)
    assert (one.cancelled, service.turns, freed) == (not committed, 2, ["mine"])
