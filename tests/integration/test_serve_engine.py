"""The serving engine draws the trainer's tokens, whoever else is served beside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from asking import token_request
from tiny import Cast, cast

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.contract.types import Action
from colearn.contract.worker import QueueFull, Worker, WorkerStopped
from colearn.deploy.client.protocol.errors import report
from colearn.deploy.serve.service import FAILURES
from colearn.engines.decoder import Decoder
from colearn.engines.job import Done, Event, Failed, Job

MEGABYTE = 2**20
LIMIT = MEGABYTE // 8
SECRET = "what the client said"
WORDS = ("a long walk through the wood", "ash", "the elder and the fir", "oak", "larch " * 12)


class Served:
    """An engine and what its jobs were told."""

    def __init__(self, team: Cast, **settings: Any) -> None:
        self.voice = next(iter(team.voices.values()))
        self.base = next(iter(team.bases.values()))
        self.told: dict[Job, list[Event]] = {}
        self.gave_up = threading.Event()
        self.changed = threading.Condition()
        waiting = settings.pop("max_waiting", 64)
        defaults = {"max_rows": 16, "memory": 64 * MEGABYTE, "piece": 512}
        self.engine = Decoder(self.base, **{**defaults, **settings})
        self.worker = Worker(
            self.engine,
            max_waiting=waiting,
            deliver=self._deliver,
            failed=self._failed,
            most_failures=FAILURES,
            gave_up=self.gave_up.set,
            idle=None,
        )

    def _failed(self, jobs: Sequence[Job], error: BaseException | None) -> None:
        if error is not None:
            report(error)
        self._deliver([(job, Failed("failed")) for job in jobs])

    def _deliver(self, told: Sequence[tuple[Job, Event]]) -> None:
        with self.changed:
            for job, event in told:
                self.told.setdefault(job, []).append(event)
            self.changed.notify_all()

    def job(
        self,
        history: TokenHistory,
        *seeds: int,
        continues: TokenHistory | None = None,
        keeps: bool = False,
        sampling: Sampling | None = None,
    ) -> Job:
        request = TokenRequest(
            agent="ada",
            history=history,
            continues=continues,
            sampling=sampling or self.voice.sampling,
            seeds=seeds,
        )
        assert self.voice.chat is not None
        return Job(request, self.voice.chat, keeps=keeps)

    def ended(self, job: Job) -> bool:
        return any(isinstance(event, Done | Failed) for event in self.told.get(job, ()))

    def wait(self, *jobs: Job) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: all(map(self.ended, jobs)), timeout=600)

    def failed(self, job: Job) -> bool:
        return isinstance(self.told[job][-1], Failed)


@contextmanager
def served(team: Cast, **settings: Any) -> Iterator[Served]:
    server = Served(team, **settings)
    server.worker.start()
    try:
        yield server
    finally:
        server.worker.close()


def opening(one: Served, text: str, window: int | None = None) -> TokenHistory:
    return TokenHistory().observe(one.voice.chat.open(text).tokens, window)


def three_turns(
    one: Served, words: Sequence[str], seed: int, *, beside: Callable[[], None] = lambda: None
) -> list[tuple[int, ...]]:
    """The tokens of a session's three turns; `beside` runs between them."""
    before, last, turns = TokenHistory(), None, []
    for turn, text in enumerate(words):
        chat = one.voice.chat
        seen = chat.open(text) if last is None else chat.continuation(text, last)
        history = before.observe(seen.tokens, one.voice.window)
        job = one.job(history, seed + turn, continues=before, keeps=True)
        one.worker.submit(job)
        one.wait(job)
        tokens = tuple(job.choices[0].tokens)
        turns.append(tokens)
        before, last = job.choices[0].history, Action("", tokens)
        beside()
    return turns


def trained_turns(team: Cast, words: Sequence[str], seed: int) -> list[tuple[int, ...]]:
    """The same by the trainer's generator."""
    (agent, voice), (generator,) = next(iter(team.voices.items())), team.generators.values()
    history, last, turns = None, None, []
    for turn, text in enumerate(words):
        seen = voice.chat.open(text) if last is None else voice.chat.continuation(text, last)
        request = token_request(team.voices, agent, seen.tokens, (seed + turn,), continues=history)
        ((sampled,),) = generator.generate([request])
        history, last = sampled.history, sampled.action
        turns.append(sampled.action.tokens)
    return turns


@pytest.mark.parametrize(
    ("kind", "window", "temperature"),
    [("qwen3", None, 0.0), ("qwen3", 40, 1.0), ("gemma3", 40, 1.0)],
)
def test_three_turns_are_the_trainers(kind: str, window: int | None, temperature: float) -> None:
    team = cast(("ada",), kind=kind, window=window, temperature=temperature)
    with served(team) as one:
        assert three_turns(one, WORDS[:3], 5) == trained_turns(team, WORDS[:3], 5)


@pytest.mark.parametrize("window", (None, 40))
def test_an_evicted_session_goes_on_with_the_same_tokens(window: int | None) -> None:
    team = cast(("ada",), window=window)
    with served(team) as one:
        kept = three_turns(one, WORDS[:3], 5)
    with served(team) as one:
        evicted = three_turns(one, WORDS[:3], 5, beside=lambda: one.engine.prefixes.evict(0))
        assert one.engine.prefixes.evicted == 3
    assert evicted == kept


def test_the_cache_of_a_turn_that_was_given_up_is_not_used() -> None:
    with served(cast(("ada",))) as one:
        history = opening(one, "ash")
        before = TokenHistory()
        given_up = one.job(opening(one, "another text"), 1, continues=before, keeps=True)
        again = one.job(history, 2, continues=before)
        for job in (given_up, again):
            one.worker.submit(job)
            one.wait(job)
    assert again.prefilled == len(history)


def test_many_at_once_are_what_each_is_alone() -> None:
    team = cast(("ada",), max_tokens=10)
    with served(team) as one:
        jobs = [one.job(opening(one, WORDS[n % 5]), n) for n in range(24)]
        for number, job in enumerate(jobs):
            one.worker.submit(job)
            if number % 7 == 0:
                time.sleep(0.01)  # rows join while others decode
        one.wait(*jobs)
    alone = [trained_turns(team, [WORDS[n % 5]], n)[0] for n in range(24)]
    assert [tuple(job.choices[0].tokens) for job in jobs] == alone


def test_a_long_prompt_in_pieces_is_the_same() -> None:
    team = cast(("ada",))
    with served(team, piece=7) as one:
        assert three_turns(one, WORDS[2:], 5) == trained_turns(team, WORDS[2:], 5)


def test_choices_fork_after_one_prefill() -> None:
    team = cast(("ada",))
    (generator,) = team.generators.values()
    with served(team) as one:
        job = one.job(opening(one, "ash"), 3, 4, 5)
        one.worker.submit(job)
        one.wait(job)
        assert one.engine.prefilled_tokens == len(job.request.history)
    request = token_request(team.voices, "ada", job.request.history.ids, job.request.seeds)
    (sampled,) = generator.generate([request])
    assert [tuple(c.tokens) for c in job.choices] == [s.action.tokens for s in sampled]
    assert [c.finish for c in job.choices] == [s.action.finish for s in sampled]


def test_the_agents_own_stop_ends_as_in_training() -> None:
    team = cast(("ada",), stop=("e", "a"), max_tokens=60, temperature=1.0)
    (generator,) = team.generators.values()
    with served(team) as one:
        job = one.job(opening(one, "ash"), *range(8))
        one.worker.submit(job)
        one.wait(job)
    request = token_request(team.voices, "ada", job.request.history.ids, job.request.seeds)
    (sampled,) = generator.generate([request])
    assert [(c.text, c.finish) for c in job.choices] == [
        (s.action.text, s.action.finish) for s in sampled
    ]
    assert any(choice.finish == "stop" for choice in job.choices)


def test_a_cancelled_job_frees_its_row() -> None:
    team = cast(("ada",))
    with served(team, max_rows=1) as one:
        endless = one.job(opening(one, "ash"), 1, sampling=Sampling(max_tokens=100_000))
        one.worker.submit(endless)
        short = one.job(opening(one, "oak"), 2)
        one.worker.submit(short)
        endless.cancelled = True
        one.wait(short)
        assert one.engine.running == 0
    assert not one.ended(endless)


def test_a_long_prompt_whose_client_has_gone_is_not_read_on() -> None:
    one = Served(cast(("ada",)), piece=8)
    gone = one.job(opening(one, "larch " * 40), 1)
    one.engine.submit(gone)
    one.engine.step()
    assert one.engine.running == 1
    gone.cancelled = True
    one.engine.step()
    assert not one.engine.busy


def test_more_than_may_wait_is_refused() -> None:
    served = Served(cast(("ada",)), max_waiting=2)
    jobs = [served.job(opening(served, "ash"), n) for n in range(3)]
    for job in jobs[:2]:
        served.worker.submit(job)
    with pytest.raises(QueueFull):
        served.worker.submit(jobs[2])


def test_memory_stays_within_its_limit() -> None:
    team = cast(("ada",))
    with served(team, memory=LIMIT) as one:
        most, histories = 0, []
        for number in range(12):
            job = one.job(opening(one, WORDS[number % 5]), number, keeps=True)
            one.worker.submit(job)
            one.wait(job)
            histories.append(job.choices[0].history)
            most = max(most, one.engine.cache_bytes)
        assert one.engine.prefixes.evicted > 0
    assert most <= LIMIT


def test_a_failure_fails_its_requests_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(cast(("ada",))) as one:
        job, after = one.job(opening(one, "ash"), 1), one.job(opening(one, "ash"), 1)
        hidden = one.base.hidden

        def broken(*_: Any, **__: Any) -> Any:
            raise RuntimeError(SECRET)

        monkeypatch.setattr(one.base, "hidden", broken)
        one.worker.submit(job)
        one.wait(job)
        monkeypatch.setattr(one.base, "hidden", hidden)
        one.worker.submit(after)
        one.wait(after)
        assert one.failed(job) and not one.failed(after)
    reported = capfd.readouterr().err
    assert "internal error: RuntimeError" in reported and SECRET not in reported


def test_an_engine_that_fails_again_and_again_gives_up(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(cast(("ada",))) as one:
        monkeypatch.setattr(one.base, "hidden", lambda *_, **__: 1 / 0)
        for number in range(FAILURES):
            job = one.job(opening(one, "ash"), number)
            one.worker.submit(job)
            one.wait(job)
        assert one.gave_up.wait(600)
        with pytest.raises(WorkerStopped):
            one.worker.submit(one.job(opening(one, "ash"), 9))
    capfd.readouterr()


def test_the_end_tells_those_that_run_and_those_that_wait() -> None:
    with served(cast(("ada",)), max_rows=1) as one:
        endless = Sampling(max_tokens=100_000)
        jobs = [one.job(opening(one, "ash"), n, sampling=endless) for n in range(3)]
        for job in jobs:
            one.worker.submit(job)
        one.worker.close()
        one.wait(*jobs)
        assert all(map(one.failed, jobs))
