"""An LLM judge: what it is asked, how its answer is read, and what it costs."""

from __future__ import annotations

import pickle

import pytest
from fastapi.responses import JSONResponse, Response

from colearn.deploy.client.endpoint import AgentLost, Endpoint, Refused
from colearn.errors import ConfigError
from colearn.tasks.rewards.judge import Judge
from tests.helpers.scripted_endpoint import ScriptedEndpoint, cut_off, status


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def server():
    with ScriptedEndpoint().serving() as server:
        yield server


@pytest.fixture
def endpoint(server):
    """The server, which has seen nothing and says 7."""
    server.speak = lambda messages, seed: "7"
    server.faults, server.together = [], 0
    server.requests.clear()
    server.headers.clear()
    return server


def judge(endpoint, **settings):
    return Judge(url=endpoint.url, **{"retries": 1, "timeout": 10.0, **settings})


def test_the_score_is_scaled_to_its_range(endpoint):
    assert judge(endpoint)(["q"], ["a"]) == [0.7]
    assert judge(endpoint, lowest=5.0, highest=9.0)(["q"], ["a"]) == [0.5]


def test_the_default_prompt_asks_for_the_line_that_is_read(endpoint):
    judge(endpoint, lowest=1.0, highest=7.0)(["q"], ["a"])
    said = endpoint.requests[0]["messages"][0]["content"]
    assert said.splitlines()[-2:] == [
        "Score: N",
        "where N is a number from 1 (useless) to 7 (perfect).",
    ]


def completion(content, finish="stop", **others):
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return lambda _: JSONResponse({"choices": [choice], **others})


def raw(body, status_code=200):
    return lambda _: Response(body, status_code=status_code, media_type="application/json")


@pytest.mark.parametrize("finish", ["length", "content_filter", ["stop"]])
def test_a_reply_that_did_not_end_by_itself_is_not_read(endpoint, finish):
    endpoint.faults = [completion("Score: 1", finish=finish)]
    assert judge(endpoint)(["q"], ["a"]) == [0.7]  # the second reply


@pytest.mark.parametrize(
    ("message", "finish", "line"),
    [
        (
            {"content": None, "refusal": "I cannot rate that."},
            "stop",
            "refuses: I cannot rate that",
        ),
        ({"content": "Score: 1", "refusal": "No."}, "stop", "refuses: No"),
        ({"content": "Score: 1"}, "content_filter", "finish_reason 'content_filter'"),
        ({"content": "Score: 1"}, "error", "finish_reason 'error' after 'Score: 1'"),
        ({"content": None, "reasoning": "Score: 1"}, "length", "reasoning, but no text"),
        ({"content": "Score: 1", "tool_calls": [{"function": {"name": "look"}}]}, "stop", "'look'"),
    ],
)
def test_a_reply_that_is_no_verdict_is_unreadable_and_quoted(endpoint, message, finish, line):
    body = {"choices": [{"message": message, "finish_reason": finish}]}
    endpoint.faults = [lambda _: JSONResponse(body)] * 2
    asked = judge(endpoint)
    with pytest.raises(AgentLost, match=line):
        asked(["q"], ["a"])
    assert asked.costs()["judge unreadable"] == 2.0
    assert asked(["q"], ["a"]) == [0.7]


def test_a_verdict_in_parts_is_read(endpoint):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Score: 1"}]}
    endpoint.faults = [completion([thought, {"type": "text", "text": "Score: 7"}])]
    assert judge(endpoint)(["q"], ["a"]) == [0.7]


def test_an_error_of_the_provider_with_status_200_is_asked_again(endpoint):
    endpoint.faults = [raw('{"error": {"code": 502, "message": "upstream died"}}')] * 2
    with pytest.raises(AgentLost, match="status 200 with an error: 502: upstream died"):
        judge(endpoint)(["q"], ["a"])
    endpoint.faults = [raw('{"error": {"code": 402, "message": "no credits"}}')]
    with pytest.raises(Refused, match="402: no credits"):
        judge(endpoint)(["q"], ["a"])


@pytest.mark.parametrize(
    "odd",
    [
        raw("", 204),
        raw("[]"),
        raw("{"),
        raw('{"choices": []}'),
        raw('{"choices": [{"message": {"content": 7}}]}'),
        raw('{"choices": ' + "[" * 100_000),
        completion("Score: NaN"),
    ],
)
def test_an_odd_answer_is_a_failed_judgement(endpoint, odd):
    endpoint.faults = [odd]
    unsure = judge(endpoint, retries=0, failure_reward=0.3)
    assert unsure(["q"], ["a"]) == [0.3]
    assert unsure.costs()["judge failures"] == unsure.costs()["judge unreadable"] == 1.0


@pytest.mark.parametrize(
    "usage",
    [
        "[]",
        '{"prompt_tokens": NaN, "completion_tokens": 1}',
        '{"prompt_tokens": -5, "completion_tokens": 1}',
        '{"prompt_tokens": true, "completion_tokens": 1}',
        '{"prompt_tokens": ' + "9" * 400 + ', "completion_tokens": 1}',
        '{"prompt_tokens": 1}',
    ],
)
def test_tokens_that_cannot_be_counted_are_counted_as_unknown(endpoint, usage):
    choice = '{"message": {"content": "Score: 7"}, "finish_reason": "stop"}'
    endpoint.faults = [raw(f'{{"choices": [{choice}], "usage": {usage}}}')]
    asked = judge(endpoint, prices=(1.0, 1.0))
    assert asked(["q"], ["a"]) == [0.7]
    assert asked.costs() == {
        "judge calls": 1.0,
        "judge calls without usage": 1.0,
        "judge price": 0.0,
    }


def test_metrics_tell_unreadable_replies_and_failures(endpoint):
    replies = {"a": ["good", "4"], "b": ["good", "bad"], "c": ["4"]}
    endpoint.speak = lambda messages, seed: replies[messages[0]["content"]].pop(0)
    measured = {}
    unsure = judge(endpoint, rubric="{completion}", failure_reward=0.0)
    rewards = unsure(["q"] * 3, ["a", "b", "c"], log_metric=measured.__setitem__)
    assert rewards == [0.4, 0.0, 0.4]
    assert measured == {"unreadable": 3 / 3, "failed": 1 / 3}
    assert tuple(measured) == unsure.measures


def test_a_judge_takes_the_arguments_that_trl_passes(endpoint):
    state = object()
    given = {"trainer_state": state, "log_extra": print, "log_metric": lambda name, value: None}
    assert judge(endpoint)(["q"], ["a"], completion_ids=[[1]], **given) == [0.7]


def test_the_rubric_holds_prompt_completion_and_columns(endpoint):
    rubric = "{prompt}|{completion}|{truth}|{lowest}-{highest}"
    judge(endpoint, rubric=rubric)(["q"], ["a"], truth=["t"])
    [body] = endpoint.requests
    assert body["messages"] == [{"role": "user", "content": "q|a|t|0-10"}]
    assert body["temperature"] == 0 and "model" not in body


def test_messages_are_judged_by_their_texts(endpoint):
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    said = [{"role": "assistant", "content": "a"}]
    judge(endpoint, rubric="{prompt}|{completion}")([prompt], [said])
    assert endpoint.requests[0]["messages"][0]["content"] == "s\nu|a"


def test_a_judge_reads_the_answer_without_its_reasoning(endpoint):
    judge(endpoint, rubric="{completion}")(["q"], ["<think>draft</think>\n\na"])
    assert endpoint.requests[0]["messages"][0]["content"] == "a"


def test_the_same_question_is_asked_once_even_by_another_process(endpoint):
    first, second = judge(endpoint), judge(endpoint)
    assert first(["q"], ["a"]) == second(["q"], ["a"]) == [0.7]
    assert len(endpoint.requests) == 1
    assert second.costs() == {"judge cached": 1.0}


@pytest.mark.parametrize(
    "changed", [{"rubric": "{completion}"}, {"model": "other"}, {"highest": 7.0}]
)
def test_another_question_is_asked_anew(endpoint, changed):
    judge(endpoint)(["q"], ["a"])
    judge(endpoint, **changed)(["q"], ["a"])
    assert len(endpoint.requests) == 2


def test_judges_at_two_endpoints_do_not_share_their_verdicts(endpoint):
    with ScriptedEndpoint(speak=lambda messages, seed: "3").serving() as stricter:
        assert judge(endpoint)(["q"], ["a"]) == [0.7]
        assert judge(stricter)(["q"], ["a"]) == [0.3]


def test_a_reply_whose_content_is_no_text_has_no_score(endpoint):
    content = [{"type": "text", "text": "9"}, {"type": "image_url", "image_url": {"url": "u"}}]
    endpoint.faults = [lambda _: JSONResponse({"choices": [{"message": {"content": content}}]})]
    assert judge(endpoint)(["q"], ["a"]) == [0.7]


def test_connections_are_closed_after_scores_and_after_a_loss(endpoint, monkeypatch):
    closed = []
    close = Endpoint.close

    async def noted(one):
        await close(one)
        closed.append(one)

    monkeypatch.setattr(Endpoint, "close", noted)
    judge(endpoint)(["q"], ["a"])
    endpoint.faults = [status(400)]
    with pytest.raises(Refused):
        judge(endpoint)(["q"], ["b"])
    assert len(closed) == 2


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "{}",
        '{"score": NaN}',
        '{"score": 99}',
        '{"score": "7"}',
    ],
)
def test_a_damaged_verdict_is_asked_for_again(endpoint, tmp_path, damaged):
    judge(endpoint)(["q"], ["a"])
    [path] = (tmp_path / "cache").rglob("*.json")
    path.write_text(damaged)
    assert judge(endpoint)(["q"], ["a"]) == [0.7] and len(endpoint.requests) == 2


def test_a_failure_of_the_server_is_asked_again(endpoint):
    endpoint.faults = [status(503)]
    assert judge(endpoint)(["q"], ["a"]) == [0.7]


def test_a_cut_reply_names_the_setting_to_raise(endpoint):
    endpoint.faults = [completion("Score: 1", finish="length")]
    with pytest.raises(AgentLost, match=r"raise task\.reward\.max_tokens if it was cut at 16"):
        judge(endpoint, retries=0)(["q"], ["a"])


@pytest.mark.parametrize("reply", ["good", "11"])
def test_a_reply_without_a_score_in_range_is_asked_again(endpoint, reply):
    replies = [reply, "4"]
    endpoint.speak = lambda messages, seed: replies.pop(0)
    assert judge(endpoint)(["q"], ["a"]) == [0.4]


def test_a_judge_that_never_scores_ends_with_one_line(endpoint):
    endpoint.speak = lambda messages, seed: "good"
    with pytest.raises(
        AgentLost,
        match=r"agent 'judge' at .* replied 'good', no line 'Score: N' with one N from 0 to 10;",
    ):
        judge(endpoint)(["q"], ["a"])


def test_a_lost_judge_pays_the_failure_reward_and_is_counted(endpoint):
    endpoint.faults = [cut_off, cut_off]
    unsure = judge(endpoint, failure_reward=0.3)
    assert unsure(["q"], ["a"]) == [0.3]
    assert unsure.costs() == {"judge failures": 1.0}


def test_a_wrong_request_ends_the_run_whatever_the_failure_reward(endpoint):
    endpoint.faults = [status(400)]
    with pytest.raises(Refused, match=r"status 400: on purpose"):
        judge(endpoint, failure_reward=0.3)(["q"], ["a"])


def test_a_slow_judge_is_left_after_the_time_limit():
    with ScriptedEndpoint(delay=30.0).serving() as slow:
        assert judge(slow, timeout=0.2, retries=0, failure_reward=0.0)(["q"], ["a"]) == [0.0]


def test_several_completions_are_judged_at_the_same_time(endpoint):
    endpoint.together = 5
    assert judge(endpoint, timeout=600.0)(["q"] * 5, list("abcde")) == [0.7] * 5


def test_costs_count_calls_tokens_and_the_price(endpoint):
    paid = judge(endpoint, prices=(2e6, 3e6))
    paid(["q", "q"], ["a", "bc"])
    assert paid.costs() == {  # the script reports 1 prompt token and a byte per completion token
        "judge calls": 2.0,
        "judge prompt tokens": 2.0,
        "judge completion tokens": 2.0,
        "judge price": 2 * 2.0 + 2 * 3.0,
    }


def test_the_key_is_sent_and_never_shown(endpoint, monkeypatch):
    monkeypatch.setenv("COLEARN_JUDGE_TOKEN", "hidden")
    endpoint.faults = [status(400, "wrong key hidden")]
    with pytest.raises(Refused) as caught:
        judge(endpoint)(["q"], ["a"])
    assert endpoint.headers[0]["authorization"] == "Bearer hidden"
    assert "hidden" not in str(caught.value)


def test_a_judge_travels_to_another_process_with_its_counts(endpoint):
    counted = judge(endpoint)
    counted(["q"], ["a"])
    copied = pickle.loads(pickle.dumps(counted))
    copied(["q"], ["b"])
    assert (counted.costs()["judge calls"], copied.costs()["judge calls"]) == (1.0, 2.0)


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"url": "nowhere"}, "agent 'judge': the URL must look like"),
        ({"rubric": "{prompt}"}, "rubric: lacks {completion}"),
        ({"rubric": "{completion"}, "rubric: .*; write a literal brace twice"),
        ({"rubric": "{completion} {0}"}, "rubric: '.0.' is no plain name"),
        ({"rubric": "{completion.__class__}"}, "is no plain name"),
        ({"lowest": 10.0}, "lowest: must be below highest"),
        ({"highest": float("inf")}, "highest: must be finite"),
        ({"failure_reward": float("nan")}, "failure_reward: must be finite"),
        ({"timeout": 0.0}, "timeout: must be above 0"),
        ({"retries": -1}, "retries: must be 0 or more"),
        ({"max_tokens": 0}, "max_tokens: must be 1 or more"),
    ],
)
def test_a_wrong_setting_is_named(settings, line):
    with pytest.raises(ConfigError, match=line):
        Judge(**{"url": "http://127.0.0.1:1", **settings})


def test_a_column_that_the_data_lack_is_named(endpoint):
    with pytest.raises(ConfigError, match=r"task\.reward\.rubric: the data have no column 'truth'"):
        judge(endpoint, rubric="{completion} {truth}")(["q"], ["a"])
