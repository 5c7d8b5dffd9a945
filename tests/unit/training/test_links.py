"""Workers of several processes: what each is asked, which of their failures is told."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from colearn.contract import Sampling, TokenAnswer, TokenHistory, TokenRequest
from colearn.contract.types import Action
from colearn.errors import ModelLost
from colearn.training.hosts.links import WorkerHandle, WorkerLink
from colearn.training.hosts.remote_models import RemoteEngine


def test_every_process_runs_a_call_and_the_first_ones_result_is_returned() -> None:
    both = threading.Barrier(2, timeout=600)

    def process(number: int) -> Any:
        def call(method: str, *args: Any) -> Any:
            both.wait()
            return number, method, args

        return call

    link = WorkerLink([process(0), process(1)])
    assert link("step", 0.5) == (0, "step", (0.5,))
    assert link.each("accumulate", [(1,), (2,)]) == [
        (0, "accumulate", (1,)),
        (1, "accumulate", (2,)),
    ]


def test_the_loss_of_a_process_is_told_and_not_the_failure_that_it_caused() -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("connection closed by peer")

    def lost(*_: Any) -> None:
        time.sleep(0.2)
        raise ModelLost("the worker has ended")

    with pytest.raises(ModelLost, match="the worker has ended"):
        WorkerLink([broken, lost])("step", 0.0)


def test_a_loss_is_told_while_another_process_waits_for_the_lost_one() -> None:
    told, gave_up = threading.Event(), []

    def waits(*_: Any) -> None:
        gave_up.append(not told.wait(600))

    def lost(*_: Any) -> None:
        raise ModelLost("the worker has ended")

    with pytest.raises(ModelLost):
        WorkerLink([waits, lost])("step", 0.0)
    assert not gave_up
    told.set()


def test_what_is_collected_here_is_freed_in_every_process_under_its_own_number() -> None:
    calls: list[tuple[int, str, Any]] = []

    def process(number: int) -> Any:
        return lambda method, *args: calls.append((number, method, args))

    link = WorkerLink([process(0), process(1)])
    handle = WorkerHandle(link, (7, 9))
    assert handle.numbers == [7, 9]
    del handle
    link("close")
    drops = [(number, args) for number, method, args in calls if method == "drop"]
    assert sorted(drops) == [(0, ([7],)), (1, ([9],))]


def test_processes_share_requests_and_a_history_stays_where_its_cache_is() -> None:
    sent: list[list[list[int]]] = []

    def process(number: int) -> Any:
        def call(method: str, engine: int, requests: Any) -> Any:
            sent[-1][number] = [request.seeds[0] for request, _ in requests]
            said = Action(text="", tokens=(), logprobs=(), finish="stop")
            return [
                [(TokenAnswer(said, TokenHistory()), 10 * number) for _ in request.seeds]
                for request, _ in requests
            ]

        return call

    engine = RemoteEngine(WorkerLink([process(0), process(1)]), 0, {"ada": None})

    def ask(seeds: tuple[int, ...], continues: TokenHistory | None = None) -> TokenRequest:
        return TokenRequest(
            agent="ada",
            history=TokenHistory(),
            sampling=Sampling(),
            seeds=seeds,
            continues=continues,
        )

    sent.append([[], []])
    answers = engine.generate([ask((1, 1)), ask((2,)), ask((3,)), ask((4,))])
    assert sent[-1] == [[1, 4], [2, 3]]  # two rows, then one and one beside them, then the first
    assert [len(one) for one in answers] == [2, 1, 1, 1]
    sent.append([[], []])
    engine.generate([ask((5,), answers[1][0].history), ask((6,), answers[2][0].history), ask((7,))])
    assert sent[-1] == [[7], [5, 6]]
