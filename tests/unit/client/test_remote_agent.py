"""One agent behind an endpoint: what is sent, what is asked again, and what is an error."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response, StreamingResponse
from scripted_endpoint import ScriptedEndpoint, cut_off, status

from colearn.deploy.client import RemoteAgent
from colearn.deploy.client.endpoint import AgentLost, Refused, RemoteError
from colearn.errors import ConfigError


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint().serving() as serving:
        yield serving


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.deploy.client.endpoint.FIRST_WAIT", 0.01)
    monkeypatch.delenv("COLEARN_TOKEN", raising=False)


def agent(endpoint: ScriptedEndpoint, **settings: Any) -> RemoteAgent:
    return RemoteAgent(endpoint.url, **{"timeout": 5.0, **settings})


def test_every_turn_brings_the_whole_history_in_one_session(endpoint: ScriptedEndpoint) -> None:
    with agent(endpoint) as remote:
        talk = remote.conversation()
        first = talk.act("one two", seed=7)
        talk.act("three", seed=8)
    assert first.text == "2 words, seed 7"
    assert first.token_ids == tuple(b"2 words, seed 7") and first.tokens == 15
    opening, following = endpoint.requests
    assert opening["messages"] == [{"role": "user", "content": "one two"}]
    assert following["messages"] == [
        {"role": "user", "content": "one two"},
        {"role": "assistant", "content": "2 words, seed 7"},
        {"role": "user", "content": "three"},
    ]
    assert opening["session_id"] == following["session_id"]
    assert (opening["model"], following["seed"]) == ("ada", 8)


def test_an_endpoint_that_is_not_colearn_gets_no_session(endpoint: ScriptedEndpoint) -> None:
    endpoint.owned_by = "vllm"
    with agent(endpoint) as remote:
        talk = remote.conversation()
        talk.act("hi")
        reply = talk.act("again")
    assert all("session_id" not in body for body in endpoint.requests)
    assert len(endpoint.requests[1]["messages"]) == 3
    assert reply.token_ids is None and reply.tokens == len(reply.text)


@pytest.mark.parametrize(
    ("owner", "skipped", "sampling"), [("vllm", False, {"stop": ["END"]}), ("someone", None, {})]
)
def test_vllm_is_asked_to_leave_tags_that_are_special_tokens_in_the_text(
    endpoint: ScriptedEndpoint, owner: str, skipped: bool | None, sampling: dict[str, Any]
) -> None:
    endpoint.owned_by = owner
    with agent(endpoint, sampling=sampling) as remote:
        remote.conversation().act("hi")
    (asked,) = endpoint.requests
    assert asked.get("skip_special_tokens") is skipped
    assert "include_stop_str_in_output" not in asked  # also the end token's text


@pytest.mark.parametrize(
    ("owner", "stop", "text"),
    [("vllm", "END", "xEND"), ("vllm", 151645, "x"), ("vllm", None, "x"), ("someone", "END", "x")],
)
def test_the_stop_string_that_vllm_removes_is_in_the_text_as_in_training(
    endpoint: ScriptedEndpoint, owner: str, stop: Any, text: str
) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": "stop", "stop_reason": stop}
    endpoint.owned_by = owner
    endpoint.faults = [lambda endpoint: JSONResponse({"choices": [choice]})]
    with agent(endpoint, sampling={"stop": ["END"]}) as remote:
        talk = remote.conversation()
        assert talk.act("hi").text == talk.messages[-1]["content"] == text


def test_a_conversation_keeps_one_routing_header(endpoint: ScriptedEndpoint) -> None:
    endpoint.owned_by = "vllm"
    with agent(endpoint) as remote:
        for _ in range(2):
            talk = remote.conversation()
            talk.act("hi")
            talk.act("again")
    named = [headers["x-session-id"] for headers in endpoint.headers]
    assert named[0] == named[1] != named[2] == named[3]


def test_greedy_play_asks_for_temperature_zero_over_other_sampling(
    endpoint: ScriptedEndpoint,
) -> None:
    sampling = {"temperature": 0.7, "max_tokens": 16}
    with agent(endpoint, sampling=sampling, system="be brief") as remote:
        remote.conversation().act("hi", greedy=True)
        remote.conversation().act("hi")
    greedy, sampled = endpoint.requests
    assert (greedy["temperature"], greedy["max_tokens"], sampled["temperature"]) == (0, 16, 0.7)
    assert greedy["messages"][0] == {"role": "system", "content": "be brief"}


@pytest.mark.parametrize("code", [408, 429, 500])
def test_a_passing_failure_is_asked_again(endpoint: ScriptedEndpoint, code: int) -> None:
    endpoint.faults = [status(code), status(code)]
    with agent(endpoint) as remote:
        talk = remote.conversation()
        assert talk.act("hi", seed=1).text == "1 words, seed 1"
    assert talk.retries == 2 and len(endpoint.requests) == 3


@pytest.mark.parametrize("code", [400, 404, 422])
def test_a_wrong_request_is_not_asked_again(endpoint: ScriptedEndpoint, code: int) -> None:
    endpoint.faults = [status(code, "max_tokens: too many")]
    with agent(endpoint) as remote:
        line = f"agent 'agent' at {endpoint.url}/v1: status {code}: max_tokens: too many"
        with pytest.raises(Refused) as raised:
            remote.conversation().act("hi")
    assert str(raised.value) == line and raised.value.status == code
    assert len(endpoint.requests) == 1


def test_the_wait_that_a_server_asks_for_is_kept(endpoint: ScriptedEndpoint) -> None:
    endpoint.faults = [status(429, retry_after="0.1")]
    with agent(endpoint) as remote:
        started = time.perf_counter()
        remote.conversation().act("hi")
    assert time.perf_counter() - started >= 0.1


def test_a_wait_beyond_the_timeout_is_not_waited_for(endpoint: ScriptedEndpoint) -> None:
    endpoint.faults = [status(503, retry_after="3600")]
    too_long = pytest.raises(AgentLost, match="asks to wait 3600 s, longer than the timeout")
    with agent(endpoint) as remote, too_long:
        remote.conversation().act("hi")


@pytest.mark.parametrize(
    "said",
    ["soon", "Thu, 99999999999999999999 Jan 2026 1:1:1", "Mon, 01 Jan 2026 00:00:00 +9" + "9" * 20],
)
def test_a_wait_that_is_no_time_is_as_none(endpoint: ScriptedEndpoint, said: str) -> None:
    endpoint.faults = [status(429, retry_after=said)]
    with agent(endpoint) as remote:
        assert remote.conversation().act("hi", seed=1).text == "1 words, seed 1"


def test_an_endpoint_that_never_answers_is_lost_when_its_time_is_over(
    endpoint: ScriptedEndpoint,
) -> None:
    with agent(endpoint, timeout=600.0, retries=1) as remote:
        remote._agent.endpoint.timeout = 0.1  # of the opening, no limit is tried
        endpoint.delay = 60.0
        started = time.perf_counter()
        with pytest.raises(AgentLost, match=r"no answer within 0.1 s \(2 attempts\)"):
            remote.conversation().act("hi")
    assert time.perf_counter() - started >= 0.2


def test_nobody_listening_is_an_error_that_names_the_agent_and_the_address() -> None:
    with pytest.raises(AgentLost, match=r"agent 'agent' at http://127\.0\.0\.1:9/v1: .*1 attempts"):
        RemoteAgent("http://127.0.0.1:9", retries=0)


def test_an_opening_is_asked_again_in_a_fresh_session(endpoint: ScriptedEndpoint) -> None:
    endpoint.late_faults = [cut_off]
    with agent(endpoint) as remote:
        talk = remote.conversation()
        assert talk.act("one two", seed=1).text == "2 words, seed 1"
        talk.act("three")
    lost, opened, continued = (body["session_id"] for body in endpoint.requests)
    assert lost != opened == continued
    assert (talk.retries, talk.recovered) == (1, 0)


def test_a_turn_whose_answer_was_lost_is_not_played_twice(endpoint: ScriptedEndpoint) -> None:
    """The server has moved on; the history goes again, once, to a request without a session."""
    with agent(endpoint) as remote:
        talk = remote.conversation()
        talk.act("one")
        endpoint.late_faults = [cut_off]
        reply = talk.act("two", seed=3)
        talk.act("three")
    assert reply.text == "6 words, seed 3"  # one, four words of the first answer, two
    assert (talk.retries, talk.recovered) == (1, 1)
    assert ["session_id" in body for body in endpoint.requests] == [True] * 3 + [False] * 2
    assert [m["content"] for m in endpoint.requests[-1]["messages"]][::2] == ["one", "two", "three"]


def test_a_restarted_server_does_not_go_on_from_an_empty_history(
    endpoint: ScriptedEndpoint,
) -> None:
    with agent(endpoint) as remote:
        talk = remote.conversation()
        talk.act("one")
        endpoint.sessions.clear()
        assert talk.act("two", seed=3).text == "6 words, seed 3"
    assert talk.recovered == 1


def test_a_failed_turn_leaves_the_history_as_it_was(endpoint: ScriptedEndpoint) -> None:
    with agent(endpoint) as remote:
        talk = remote.conversation()
        talk.act("one", seed=1)
        endpoint.faults = [status(400)]
        with pytest.raises(Refused):
            talk.act("two")
        assert [message["role"] for message in talk.messages] == ["user", "assistant"]
        assert talk.act("two", seed=2).text == "6 words, seed 2"


def test_a_closed_conversation_is_forgotten_by_the_server(endpoint: ScriptedEndpoint) -> None:
    with agent(endpoint) as remote:
        talk = remote.conversation()
        talk.act("hi")
        assert len(endpoint.sessions) == 1
        talk.close()
    assert endpoint.sessions == {}


def test_the_key_is_sent_and_never_shown(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.token = "s3cret"
    monkeypatch.setenv("COLEARN_TOKEN", "s3cret")
    with agent(endpoint) as remote:
        endpoint.faults = [status(400, "no such key: s3cret")]
        with pytest.raises(Refused, match=r"no such key: \*\*\*$"):
            remote.conversation().act("hi")
        assert "s3cret" not in repr(vars(remote))
    assert endpoint.headers[0]["authorization"] == "Bearer s3cret"


def test_a_wrong_key_is_an_error_at_once(endpoint: ScriptedEndpoint) -> None:
    endpoint.token = "s3cret"
    with pytest.raises(Refused, match="status 401: wrong token"):
        agent(endpoint, api_key="other")


def test_a_server_cannot_write_control_characters_to_the_terminal(
    endpoint: ScriptedEndpoint,
) -> None:
    endpoint.faults = [status(400, "red \x1b[31m\nand\ra second line" + "x" * 1000)]
    with agent(endpoint) as remote, pytest.raises(Refused) as raised:
        remote.conversation().act("hi")
    assert "red [31m and a second line" in str(raised.value)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://host/v1?key=1",
        "http://host:x",
        "http://h:0",
    ],
)
def test_what_is_no_address_is_an_error(url: str) -> None:
    with pytest.raises(ConfigError, match="the URL must look like"):
        RemoteAgent(url)


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_an_address_may_end_in_v1_or_not(endpoint: ScriptedEndpoint, ending: str) -> None:
    with RemoteAgent(endpoint.url + ending) as remote:
        assert remote.model == "ada" and remote.sessions


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(RemoteError) as raised:
        RemoteAgent("http://me:pass@127.0.0.1:9/v1", retries=0)
    assert "pass" not in str(raised.value) and "127.0.0.1:9" in str(raised.value)


def test_one_of_several_models_must_be_named(endpoint: ScriptedEndpoint) -> None:
    endpoint.models = ["\x1b[2Ja", "b" * 500]
    with pytest.raises(ConfigError, match="serves 2 models") as error:
        agent(endpoint)
    assert str(error.value).isprintable() and len(str(error.value)) < 300
    endpoint.models = ["small", "large"]
    with pytest.raises(ConfigError, match=r"serves 2 models \(small, large\); name one"):
        agent(endpoint)
    with agent(endpoint, model="large") as remote:
        remote.conversation().act("hi")
    assert endpoint.requests[0]["model"] == "large"


def ended(message: dict[str, Any], finish: str | None, **others: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **others}


@pytest.mark.parametrize(
    "body",
    [
        ended({"content": "half of"}, "error"),
        {"error": {"message": "upstream died"}},
        {"error": "upstream died"},
        {"object": "error", "message": "upstream died", "code": 500},
    ],
)
def test_an_answer_that_the_server_broke_off_is_asked_for_again(
    endpoint: ScriptedEndpoint, body: dict[str, Any]
) -> None:
    endpoint.owned_by = "another"
    endpoint.faults = [lambda _: JSONResponse(body)]
    with agent(endpoint) as remote:
        talk = remote.conversation()
        assert talk.act("hi").text == "1 words, seed None"
        assert talk.retries == 1
        endpoint.faults = [lambda _: JSONResponse(body)] * 3
        with pytest.raises(AgentLost, match=r"upstream died|half of|no text"):
            talk.act("hi")
        assert len(talk.messages) == 2


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (ended({"content": None, "refusal": "I cannot."}, "stop"), "the model refuses: I cannot."),
        ({"error": {"code": 402, "message": "no credits"}}, "with an error: 402: no credits"),
        (
            {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}},
            r'403: flagged; \["violence"\]',
        ),
    ],
)
def test_an_answer_that_is_no_action_is_not_asked_for_again(
    endpoint: ScriptedEndpoint, body: dict[str, Any], line: str
) -> None:
    endpoint.faults = [lambda _: JSONResponse(body)]
    with agent(endpoint) as remote:
        talk = remote.conversation()
        with pytest.raises(Refused, match=line):
            talk.act("hi")
        assert talk.messages == [] and len(endpoint.requests) == 1


def test_the_code_of_an_error_with_status_200_is_kept(endpoint: ScriptedEndpoint) -> None:
    error = {"message": "too long", "code": "context_length_exceeded"}
    endpoint.faults = [lambda _: JSONResponse({"error": error})]
    with agent(endpoint) as remote, pytest.raises(Refused, match="too long") as refused:
        remote.conversation().act("hi")
    assert (refused.value.code, refused.value.status) == ("context_length_exceeded", 400)


def test_an_answer_that_is_no_json_is_quoted(endpoint: ScriptedEndpoint) -> None:
    endpoint.faults = [lambda _: Response("upstream died", media_type="text/plain")]
    with agent(endpoint) as remote, pytest.raises(Refused, match="JSON object: upstream died"):
        remote.conversation().act("hi")


def test_it_works_inside_a_running_event_loop(endpoint: ScriptedEndpoint) -> None:
    async def notebook() -> str:
        with agent(endpoint) as remote:
            return remote.conversation().act("hi", seed=1).text

    assert asyncio.run(notebook()) == "1 words, seed 1"


def completion(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def usage(text: bytes) -> Response:
    """A completion whose usage is this JSON."""
    return Response(
        b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": %s}' % text
    )


HOSTILE = {
    "nested lists": lambda: Response(b"[" * 200_000, media_type="application/json"),
    "nested lists in an error": lambda: Response(b"[" * 200_000, status_code=400),
    "a charset that decodes nothing": lambda: Response(
        b"\xff\xfe", headers={"content-type": "application/json; charset=idna"}
    ),
    "an error of 400 MB": lambda: Response(b"x" * (5 * 2**20), status_code=404),
    "an action of 2 MB": lambda: JSONResponse(completion("a" * (2 * 10**6))),
    "half a surrogate pair": lambda: Response(
        b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}'
    ),
    "bytes that unpack": lambda: Response(
        gzip.compress(b" " * 2**20), headers={"content-encoding": "gzip"}
    ),
    "a number of 5000 digits": lambda: Response(b'{"choices": ' + b"9" * 5000 + b"}"),
    "no content": lambda: Response(status_code=204),
    "null": lambda: Response(b"null"),
    "no choice": lambda: Response(b'{"choices": []}'),
    "an error within 900 lists": lambda: Response(
        b'{"error": {"message": ' + b"[" * 900 + b"]" * 900 + b"}}", status_code=404
    ),
    "an error of control characters": lambda: Response(
        b'{"error": {"message": "\\u001b[2J\\ud800\\u202e"}}', status_code=404
    ),
    **{
        f"{text} tokens": partial(usage, b'{"completion_tokens": %s}' % text)
        for text in (b"-1", b"9" * 400, b"NaN", b'"5"')
    },
    "a content twice": lambda: Response(
        b'{"choices": [{"message": {"content": "a", "content": "b"}, "finish_reason": "stop"}]}'
    ),
    **{
        f"{text} for an id": lambda text=text: Response(
            b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop",'
            b'"token_ids": [%s]}]}' % text
        )
        for text in (b"-1", b"0.5", b"null")
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_is_one_line_and_little_memory(
    endpoint: ScriptedEndpoint, kind: str
) -> None:
    endpoint.faults = [lambda _: HOSTILE[kind]()] * 3
    with agent(endpoint, timeout=600.0) as remote:
        talk = remote.conversation()
        with pytest.raises(RemoteError) as lost:
            talk.act("hi")
        assert str(lost.value).isprintable() and len(str(lost.value)) < 600
        endpoint.faults.clear()
        assert talk.act("again").text == "1 words, seed None"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (b"null", None),
        (b'{"completion_tokens": 3, "other": [NaN]}', 3),
    ],
)
def test_tokens_that_an_endpoint_does_not_report_are_unknown(
    endpoint: ScriptedEndpoint, text: bytes, tokens: int | None
) -> None:
    endpoint.faults = [lambda _: usage(text)]
    with agent(endpoint) as remote:
        assert remote.conversation().act("hi").tokens == tokens


def test_no_more_than_the_longest_answer_is_read(endpoint: ScriptedEndpoint) -> None:
    sent = 0

    def parts() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(400):
            sent += 2**20
            yield b" " * 2**20

    endpoint.faults = [lambda _: StreamingResponse(parts(), media_type="application/json")]
    with agent(endpoint, timeout=600.0) as remote, pytest.raises(Refused, match="longer than"):
        remote.conversation().act("hi")
    assert sent < 64 * 2**20  # what sockets and the server hold is beyond the client
