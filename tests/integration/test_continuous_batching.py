"""Continuous batching of the default generator: who joins a running batch, and that no draw
depends on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tiny import cast

from colearn.contract import Sampling, TokenAnswer, TokenHistory, TokenRequest
from colearn.engines.job import Done, Event, Job
from colearn.engines.transformers import TransformersEngine, _answers

Drawn = dict[int, list[TokenAnswer]]
Due = Callable[[int, Drawn], TokenRequest | None]
"""A request, once it arrives: a function of the number of steps and of the answers so far."""


class Later:
    """Requests that arrive over time, each before a step of the generator's engine."""

    def __init__(self, generator: TransformersEngine, *due: Due) -> None:
        self.generator, self.due = generator, dict(enumerate(due))
        self.count, self.step = len(due), -1
        self.answers: Drawn = {}
        self.takes: list[tuple[int, int]] = []
        """Step and number of requests."""
        self.answered: dict[int, int] = {}
        """Step of each answer."""
        self.all_answered = threading.Event()

    def run(self) -> None:
        worker = self.generator._worker
        joins = worker._joins

        def polled(_: int) -> bool:
            self.step += 1
            for number, one in list(self.due.items()):
                if (request := one(self.step, self.answers)) is not None:
                    del self.due[number]
                    job = self.generator._job(request)
                    job.receive = partial(self.receive, number, job)
                    worker.submit(job)
            joining = joins(len(worker._arrived))
            if joining and worker._arrived:
                self.takes.append((self.step, len(worker._arrived)))
            return joining

        worker._joins = polled
        worker.start()
        worker.call(lambda: None)
        assert self.all_answered.wait(600)
        worker._joins = joins

    def receive(self, number: int, job: Job, event: Event) -> None:
        if isinstance(event, Done):
            self.answers[number], self.answered[number] = _answers(job), self.step
            if len(self.answers) == self.count:
                self.all_answered.set()


def asked(
    start: int, tokens: int, *, after: TokenHistory | None = None, seeds: tuple[int, ...] = ()
) -> TokenRequest:
    """A request for an action of so many tokens; its history and seed are those of `start`."""
    before = TokenHistory() if after is None else after
    return TokenRequest(
        agent="ada",
        history=before.observe(range(start, start + 5), None),
        continues=after,
        sampling=Sampling(max_tokens=tokens),
        seeds=seeds or (start,),
    )


def at(step: int, request: TokenRequest) -> Due:
    return lambda now, _: request if now >= step else None


@pytest.fixture
def generator() -> TransformersEngine:
    """One whose actions end at their length alone."""
    team = cast(("ada",), max_tokens=40)
    team.voices["ada"].chat.end_ids = frozenset()
    (generator,) = team.generators.values()
    return generator


def alone(generator: TransformersEngine, request: TokenRequest) -> list[TokenAnswer]:
    return generator.generate([request])[0]


def check_same(one: list[TokenAnswer], other: list[TokenAnswer]) -> None:
    """The same tokens; rounding may differ, since the batches do."""
    assert [s.action.tokens for s in one] == [s.action.tokens for s in other]
    for mine, theirs in zip(one, other, strict=True):
        assert mine.action.logprobs == pytest.approx(theirs.action.logprobs, abs=1e-4)


def test_a_request_joins_a_running_batch_and_leaves_it_first(
    generator: TransformersEngine,
) -> None:
    """A step draws one token for each row, and the step in which a row joins draws two."""
    long, short = asked(10, 30), asked(20, 10)
    arrivals = Later(generator, at(0, long), at(5, short))
    arrivals.run()
    assert [len(drawn[0].action.tokens) for _, drawn in sorted(arrivals.answers.items())] == [
        30,
        10,
    ]
    assert arrivals.answered == {0: 28, 1: 5 + 8}
    check_same(arrivals.answers[0], alone(generator, long))
    check_same(arrivals.answers[1], alone(generator, short))


def test_requests_join_once_as_many_wait_as_run(generator: TransformersEngine) -> None:
    """One waits beside three, then beside two; with a second one they are as many as run."""
    requests = [asked(10, 20), asked(20, 20), asked(30, 8), asked(40, 6), asked(50, 6)]
    steps = (0, 0, 0, 2, 10)
    arrivals = Later(generator, *(at(s, r) for s, r in zip(steps, requests, strict=True)))
    arrivals.run()
    assert arrivals.answered[2] == 6  # from here on two rows run
    assert arrivals.takes == [(0, 3), (10, 2)]
    for number, request in enumerate(requests):
        check_same(arrivals.answers[number], alone(generator, request))


def test_a_request_joins_forks_beside_a_row_that_has_ended_and_is_held(
    generator: TransformersEngine,
) -> None:
    short, forks, late = asked(10, 3), asked(20, 20, seeds=(1, 2, 3, 4)), asked(30, 5)
    arrivals = Later(generator, at(0, short), at(0, forks), at(8, late))
    arrivals.run()
    for number, request in enumerate((short, forks, late)):
        check_same(arrivals.answers[number], alone(generator, request))


def test_a_request_joins_forks_that_share_their_history(
    generator: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked(20, 20, seeds=(1, 2, 3, 4)), asked(30, 5)
    copies = [alone(generator, request) for request in requests]
    monkeypatch.setattr("colearn.engines.branched_slab.LEAST", 0)
    arrivals = Later(generator, at(0, requests[0]), at(8, requests[1]))
    arrivals.run()
    for number, expected in enumerate(copies):
        check_same(arrivals.answers[number], expected)


def test_a_history_goes_on_in_the_batch_in_which_it_began(
    generator: TransformersEngine,
) -> None:
    """Its cache is a row of the batch that still runs; other rows join and leave meanwhile."""
    histories: list[TokenHistory] = []

    def follows(number: int, start: int, tokens: int) -> Due:
        def due(_: int, answers: Drawn) -> TokenRequest | None:
            if number not in answers:
                return None
            histories.append(answers[number][0].history)
            return asked(start, tokens, after=histories[-1])

        return due

    long, short = asked(10, 40), asked(20, 4, seeds=(1, 2))
    arrivals = Later(generator, at(0, long), at(0, short), follows(1, 30, 5), follows(2, 40, 6))
    arrivals.run()
    assert max(arrivals.answered[n] for n in (1, 2, 3)) < arrivals.answered[0] == 38
    before = alone(generator, short)
    check_same(arrivals.answers[1], before)
    middle = alone(generator, asked(30, 5, after=before[0].history))
    check_same(arrivals.answers[2], middle)
    check_same(arrivals.answers[3], alone(generator, asked(40, 6, after=middle[0].history)))
    check_same(arrivals.answers[0], alone(generator, long))
    again = asked(60, 5, after=histories[0])  # after the batch, too
    check_same(alone(generator, again), alone(generator, asked(60, 5, after=before[0].history)))


def test_a_request_without_seeds_is_answered_by_no_action(
    generator: TransformersEngine,
) -> None:
    drawn = generator.generate([replace(asked(10, 4), seeds=()), asked(20, 4)])
    assert [len(actions) for actions in drawn] == [0, 1]
    assert asyncio.run(generator.submit(replace(asked(10, 4), seeds=()))) == []


def test_requests_of_one_turn_of_the_event_loop_are_one_prefill(
    generator: TransformersEngine,
) -> None:
    prefilled: list[int] = []
    engine = generator._decoder
    step = engine.step

    def counted() -> None:
        before = engine.prefilled_tokens
        step()
        prefilled.append(engine.prefilled_tokens - before)

    engine.step = counted  # type: ignore[method-assign]

    async def both() -> list[list[TokenAnswer]]:
        return list(await asyncio.gather(*map(generator.submit, (asked(10, 4), asked(20, 4)))))

    one, other = asyncio.run(both())
    assert prefilled[0] == 5 + 5 and sum(prefilled) == 10
    check_same(one, alone(generator, asked(10, 4)))
    check_same(other, alone(generator, asked(20, 4)))
