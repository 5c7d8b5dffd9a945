"""Answers of a vLLM server that no vLLM gives: each is a lost server, and nothing of it is used."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_vllm_server import FakeVLLMServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served_engine import CHAT, PLAIN, adapted, built_engine, request
from vllm_cases import byte_tokenizer, qwen

from colearn.engines.checked_engine import BadSample, whole_action
from colearn.engines.server_answers import BadAnswer, read_generated
from colearn.engines.server_link import ServerRefused
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.engines.vllm_server_checks import check_server
from colearn.engines.vllm_weights import write_model
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec

GENERATE = "/inference/v1/generate"
VOCABULARY = 258
JUNK = [
    *(None, True, False, "", "5", "\u2603", [], {}, [[]], [{}], {"token_id": 5}, "stop", "length"),
    *(-1, 0, 3, 9, VOCABULARY - 1, VOCABULARY, 2**31, 2**63, 10**400, 0.5, -0.5, 1e-3, 1e308),
    *(-1e308, -9999.0, math.inf, -math.inf, math.nan, [5] * 500),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeVLLMServer]:
    """One server for all tests: each resets the answers that it has set."""
    folder = tmp_path_factory.mktemp("served") / "model"
    write_model(folder, Base(qwen()), byte_tokenizer())
    fake = FakeVLLMServer(folder)
    yield fake
    fake.close()


@pytest.fixture
def server(shared: FakeVLLMServer) -> Iterator[FakeVLLMServer]:
    yield shared
    shared.statuses.clear()


@pytest.fixture(scope="module")
def base() -> Base:
    return Base(qwen())


@pytest.fixture(scope="module")
def engine(base: Base, shared: FakeVLLMServer) -> Iterator[VLLMServerEngine]:
    built = built_engine(base, PLAIN, shared)
    yield built
    shared.statuses.clear()
    built.close()


@pytest.fixture(scope="module")
def adapter_base() -> Base:
    return Base(qwen())


@pytest.fixture(scope="module")
def voices(adapter_base: Base) -> Mapping[str, AgentSpec]:
    return adapted(adapter_base, "first")


def action(version: str, *tokens: int, finish: str = "stop", logprob: Any = -1.0) -> dict[str, Any]:
    """What a server answers that sampled these tokens."""
    return {
        "choices": [
            {
                "finish_reason": finish,
                "token_ids": list(tokens),
                "weight_versions": [{"version": version, "start": 0, "end": 1}],
                "logprobs": {
                    "content": [{"token_id": token, "logprob": logprob} for token in tokens]
                },
            }
        ],
        "usage": {"prompt_tokens_details": {"cached_tokens": 1}},
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value within a value."""
    found = [path]
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(one, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    whole = copy.deepcopy(value)
    at = whole
    for key in path[:-1]:
        at = at[key]
    if new is ...:
        del at[path[-1]]
    elif isinstance(at, list) and path[-1] == len(at):
        at.append(new)
    else:
        at[path[-1]] = new
    return whole


def lost(engine: VLLMServerEngine, server: FakeVLLMServer, answer: Any) -> str:
    server.statuses[GENERATE] = (200, answer)
    with pytest.raises(ServerLost) as error:
        engine.sample([request()])
    assert "\n" not in str(error.value) and str(error.value).isprintable()
    return str(error.value)


IN_A_FIXTURE = [HealthCheck.function_scoped_fixture]
WITHIN = [path for path in places(action("own", 5, 9)) if path]


@pytest.mark.parametrize("answer", [None, [], {}, 5, {"choices": None}, {"choices": []}])
def test_an_answer_without_a_choice_is_a_lost_server(
    engine: VLLMServerEngine, server: FakeVLLMServer, answer: Any
) -> None:
    assert "gave an answer that is none of vLLM" in lost(engine, server, answer)


@pytest.mark.parametrize(
    ("path", "new", "line"),
    [
        (("choices", 0, "finish_reason"), "abort", "ended a request by itself (abort)"),
        (("choices", 1), {}, "choices: "),
        (("choices", 0, "logprobs", "content", 0, "token_id"), 6, "without their log-prob"),
        (("choices", 0, "logprobs", "content", 0, "logprob"), -9999.0, "without their log-prob"),
        (("choices", 0, "logprobs"), ..., "without their log-prob"),
        (("choices", 0, "weight_versions"), None, "other weights than the last update's"),
        (("choices", 0, "weight_versions"), [], "other weights than the last update's"),
        (("choices", 0, "weight_versions", 1), {"version": "another-1"}, "other weights than"),
        (("usage",), ..., "usage: missing"),
        (("usage", "prompt_tokens_details", "cached_tokens"), 3, "3 cached tokens of a prompt of"),
    ],
)
def test_an_answer_with_one_wrong_value_is_a_lost_server(
    engine: VLLMServerEngine, server: FakeVLLMServer, path: tuple[Any, ...], new: Any, line: str
) -> None:
    assert line in lost(engine, server, replaced(action(server.version, 5, 9), path, new))


@pytest.mark.parametrize("logprob", [math.nan, math.inf, -math.inf, 0.5, 1e-4, None, "-1", True])
def test_a_log_probability_that_is_none_is_a_lost_server(
    engine: VLLMServerEngine, server: FakeVLLMServer, logprob: Any
) -> None:
    lost(engine, server, action(server.version, 5, 9, logprob=logprob))


@pytest.mark.parametrize("logprob", [0, 0.0, -100.0, 4e-7])
def test_a_log_probability_up_to_zero_and_its_rounding_is_used(
    engine: VLLMServerEngine, server: FakeVLLMServer, logprob: float
) -> None:
    server.statuses[GENERATE] = (200, action(server.version, 5, 9, logprob=logprob))
    assert engine.sample([request()])[0].action.logprobs == (logprob, logprob)


@pytest.mark.parametrize(
    ("tokens", "finish", "line"),
    [
        ((), "stop", "sampled no token"),
        ((-1, 9), "stop", "greater than or equal to 0"),
        ((VOCABULARY, 9), "stop", "sampled token 258 of a vocabulary of 258"),
        ((5,) * 5, "length", "sampled 5 tokens, more than the 4 of sampling.max_tokens"),
        ((5,) * 500, "length", "sampled 500 tokens, more than the 4"),
        ((5, 9, 5), "stop", "behind the end of an action"),
        ((3, 3), "stop", "behind the end of an action"),
        ((5, 5), "length", "cut an action after 2 of 4 tokens"),
    ],
)
def test_tokens_that_are_no_whole_action_of_the_request_are_a_lost_server(
    engine: VLLMServerEngine,
    server: FakeVLLMServer,
    tokens: tuple[int, ...],
    finish: str,
    line: str,
) -> None:
    assert line in lost(engine, server, action(server.version, *tokens, finish=finish))


@pytest.mark.parametrize(
    ("tokens", "finish"),
    [((9,), "stop"), ((VOCABULARY - 1, 3), "stop"), ((5, 5, 5, 5), "length"), ((5, 9), "length")],
)
def test_a_whole_action_of_the_request_is_used(
    engine: VLLMServerEngine, server: FakeVLLMServer, tokens: tuple[int, ...], finish: str
) -> None:
    server.statuses[GENERATE] = (200, action(server.version, *tokens, finish=finish))
    before = engine.prefilled_tokens
    (drawn,) = engine.sample([request()])
    assert drawn.action.tokens == tokens
    assert engine.prefilled_tokens - before == 2 - 1


def test_a_reason_with_control_characters_is_printed_without_them(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    answer = action(server.version, 5, 9, finish="\x1b[2Jabort" + "!" * 1000)
    assert len(lost(engine, server, answer)) < 400
    server.statuses[GENERATE] = (500, {"error": {"message": "\x1b[2Jno\u202eroom"}})
    with pytest.raises(ServerLost, match=r"cannot generate \(status 500: ") as error:
        engine.sample([request()])
    assert str(error.value).isprintable()


@settings(max_examples=500, deadline=None)
@given(path=st.sampled_from(WITHIN), junk=st.sampled_from([..., *JUNK]))
def test_an_answer_with_any_value_replaced_is_an_action_or_refused(
    path: tuple[Any, ...], junk: Any
) -> None:
    answer = replaced(action("own", 5, 9), path, junk)
    try:
        drawn = read_generated(answer, prompt=2, vocabulary=VOCABULARY, version="own")
        whole_action(request(), drawn.tokens, CHAT)
    except (BadAnswer, BadSample) as error:
        assert str(error).isprintable()
        return
    assert 1 <= len(drawn.tokens) <= 4 and set(drawn.tokens[:-1]).isdisjoint({3, 9})
    assert all(type(token) is int and 0 <= token < VOCABULARY for token in drawn.tokens)
    assert len(drawn.logprobs) == len(drawn.tokens)
    assert all(-9000 < logprob < 1e-5 for logprob in drawn.logprobs)
    assert 0 <= drawn.cached <= 2


@pytest.mark.parametrize(
    ("path", "status", "answer", "line"),
    [
        ("/collective_rpc", 500, {"detail": "full"}, r"trained model's weights \(status 500: full"),
        ("/reset_prefix_cache", 200, {"success": False}, "kept cache blocks of the old weights"),
        ("/reset_prefix_cache", 200, {}, "none of vLLM"),
        ("/reset_prefix_cache", 200, {"success": "yes"}, "none of vLLM"),
        ("/update_weight_version", 500, {"detail": "no"}, r"of its weights \(status 500: no\)"),
    ],
)
def test_weights_that_are_not_said_to_be_taken_are_a_lost_server(
    engine: VLLMServerEngine,
    server: FakeVLLMServer,
    base: Base,
    path: str,
    status: int,
    answer: Any,
    line: str,
) -> None:
    server.statuses[path] = (status, answer)
    with pytest.raises(ServerLost, match=line):
        engine.load([weight_update(Network(base, None), 1)])


class OneAnswer:
    """A link on which one path has another answer."""

    url = "http://server"

    def __init__(self, server: FakeVLLMServer, path: str, answer: Any) -> None:
        self.server, self.path, self.answer = server, path, answer

    def call(self, method: str, address: str, body: Any = None, *, timeout: float = 0) -> Any:
        if address.partition("?")[0] == self.path:
            return self.answer
        status, answer = self.server.answer(address, body or {})
        if status != 200:
            raise ServerRefused(status, "no")
        return answer


@settings(max_examples=300, deadline=None, suppress_health_check=IN_A_FIXTURE)
@given(
    path=st.sampled_from(["/v1/models", "/tokenize", "/server_info"]),
    at=st.integers(0, 7),
    junk=st.sampled_from([..., *JUNK]),
)
def test_settings_with_any_value_replaced_are_taken_or_one_line(
    voices: Mapping[str, AgentSpec],
    adapter_base: Base,
    server: FakeVLLMServer,
    path: str,
    at: int,
    junk: Any,
) -> None:
    own = server.answer(f"{path}?config_format=json", {"prompt": "def f(x)"})[1]
    inside = places(own)[1:]
    answer = replaced(own, inside[at % len(inside)], junk)
    try:
        check_server(OneAnswer(server, path, answer), adapter_base, voices)  # type: ignore[arg-type]
    except ConfigError as error:
        assert "\n" not in str(error) and str(error).startswith("run.generator.url: ")


@pytest.mark.parametrize("text", ["[]", "5", "null", "{", "[" * 10_000, '"\\ud83d"', "\x00"])
def test_a_served_folder_whose_config_is_none_is_one_line(
    base: Base, server: FakeVLLMServer, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    (card,) = server.on_v1_models({})[1]["data"]
    link = OneAnswer(server, "/v1/models", {"data": [card | {"root": str(tmp_path)}]})
    with pytest.raises(ConfigError, match=r"a folder whose config\.json ") as error:
        check_server(link, base, PLAIN)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("root", ["\x00", "a" * 300, "/" + "a/" * 2000, "/dev/null"])
def test_a_root_that_is_no_folder_is_not_compared(
    base: Base, server: FakeVLLMServer, root: str
) -> None:
    (card,) = server.on_v1_models({})[1]["data"]
    link = OneAnswer(server, "/v1/models", {"data": [card | {"root": root}]})
    assert check_server(link, base, PLAIN) == ("base", 4096)  # type: ignore[arg-type]
