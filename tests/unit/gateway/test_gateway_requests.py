"""Fields of a request that training cannot honour are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import ChatRequest, parse
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.requests import check_request
from colearn.text.notes import note_once

VALUES = {"top_p": 1.0, "top_k": 1, "seed": 0}
"""Also those that would change nothing, and those that are false."""


def request(**fields: Any) -> ChatRequest:
    messages = [{"role": "user", "content": "go"}]
    return parse(json.dumps({"messages": messages, **fields}).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [*VALUES.items(), ("n", 2), ("top_logprobs", 1), ("session_id", "s" * 32)],
)
def test_a_field_that_training_cannot_honour_is_refused_by_its_name(field: str, value: Any) -> None:
    extra = {"logprobs": True} if field == "top_logprobs" else {}
    with pytest.raises(ServeError) as error:
        check_request(request(**{field: value}, **extra), ignored=())
    assert (error.value.status, error.value.param) == (400, field)


@pytest.mark.parametrize("field", VALUES)
def test_an_ignored_field_does_not_excuse_another_one(field: str) -> None:
    check_request(request(**{field: VALUES[field]}), ignored=(field,))
    with pytest.raises(ServeError) as error:
        check_request(request(**VALUES), ignored=(field,))
    assert error.value.param == next(name for name in VALUES if name != field)


def test_values_that_ask_for_nothing_else_are_taken() -> None:
    check_request(request(n=1, logprobs=True, top_logprobs=0, temperature=0.5), ignored=())


@pytest.mark.parametrize("leaves", [True, False])
def test_an_answer_that_its_program_does_not_read_is_told(leaves: bool, capsys: Any) -> None:
    note_once.cache_clear()
    live = ProgramRun(0, ("one",), None)
    pending = live.ask("one", request())
    assert live.take() == [pending]
    if leaves:
        live.withdraw(pending)
    live.answer(pending.name, {"model": "one"})
    told = "left before its answer was there, which is trained and paid" in capsys.readouterr().err
    assert told == leaves
