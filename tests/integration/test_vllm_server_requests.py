"""What the engine of a vLLM server asks for, and what it takes for an answer."""

from __future__ import annotations

from typing import Any

import pytest
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import PLAIN, built_engine, request

from colearn.engines.vllm_server import VLLMServerEngine
from colearn.models.base import Base

GENERATE = "/inference/v1/generate"


def answer(server: FakeVLLMServer, **changed: Any) -> None:
    """What the server answers from now on: token 9, but for what is changed."""
    usage = changed.pop("usage", {})
    choice = {
        "finish_reason": "stop",
        "token_ids": [9],
        "weight_versions": [{"version": server.version, "start": 0, "end": 1}],
        "logprobs": {"content": [{"token_id": 9, "logprob": -1.0}]},
    }
    server.statuses[GENERATE] = (200, {"choices": [choice | changed], "usage": usage})


def test_a_request_says_all_that_defines_its_draw(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    engine.sample([request(temperature=0.7, top_p=0.8, top_k=40, stop=("x", "yz"))])
    assert server.draws[-1] == {
        "model": "base",
        "token_ids": [5, 6],
        "sampling_params": {
            "temperature": 0.7,
            "top_p": 0.8,
            "top_k": 40,
            "max_tokens": 4,
            "seed": 7,
            "logprobs": 0,
            "stop": ["x", "yz"],
            "stop_token_ids": [3, 9],
            "ignore_eos": True,
            "detokenize": True,
            "skip_special_tokens": False,
        },
    }


def test_a_request_without_cuts_and_stops_turns_them_off(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    engine.sample([request()])
    params = server.draws[-1]["sampling_params"]
    assert (params["top_k"], params["stop"], params["detokenize"]) == (0, [], False)


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({}, 0),
        ({"prompt_tokens_details": None}, 0),
        ({"prompt_tokens_details": {"cached_tokens": None}}, 0),
        ({"prompt_tokens_details": {"cached_tokens": 2}}, 2),
    ],
)
def test_tokens_from_the_cache_are_counted_where_the_server_says_them(
    engine: VLLMServerEngine, server: FakeVLLMServer, usage: dict[str, Any], cached: int
) -> None:
    answer(server, usage=usage)
    before = engine.prefilled_tokens
    engine.sample([request()])
    assert engine.prefilled_tokens - before == 2 - cached


@pytest.mark.parametrize("key", [None, "secret"])
def test_the_servers_key_comes_from_the_environment(
    base: Base, server: FakeVLLMServer, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("VLLM_API_KEY", key)
    built_engine(base, PLAIN, server).close()
    assert server.tokens == {None if key is None else f"Bearer {key}"}


@pytest.mark.parametrize(("asked", "longest"), [(None, 4096), (100, 100), (9999, 4096)])
def test_a_history_is_as_long_as_the_server_and_the_setting_allow(
    base: Base, server: FakeVLLMServer, asked: int | None, longest: int
) -> None:
    engine = built_engine(base, PLAIN, server, max_length=asked)
    assert engine.max_length == longest
    engine.close()
