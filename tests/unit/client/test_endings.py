"""How an answer ended decides what becomes of it: played, asked for again, or lost.

The values are those that OpenAI, vLLM, SGLang, TGI, Ollama, OpenRouter, Mistral, DeepSeek, Z.ai,
Together, Cohere and Anthropic document.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from colearn.deploy.client.completion import ENDINGS, FailedAnswer, read_completion

TEXT = "move left"
REASONED = {"content": None, "reasoning": "I should", "role": "assistant"}
CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def answer(finish: Any = "stop", *, usage: Any = None, **message: Any) -> dict[str, Any]:
    message = {"role": "assistant", **(message or {"content": TEXT})}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "end"),  # OpenAI
        ("length", "length"),
        ("eos_token", "end"),  # TGI
        ("stop_sequence", "stop"),
        ("eos", "end"),  # Together
        ("end_turn", "end"),  # Anthropic, xAI
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),  # Anthropic, Z.ai
        ("model_length", "length"),  # Mistral
        ("COMPLETE", "end"),  # Cohere
        ("MAX_TOKENS", "length"),
        ("repetition", "length"),  # vLLM: the server has ended a loop
        (None, "end"),  # OpenRouter: depends on the model
        ("", "end"),
    ],
)
def test_an_answer_that_the_model_ended_is_played(reason: str | None, finish: str) -> None:
    completion = read_completion(answer(reason))
    assert (completion.text, completion.finish) == (TEXT, finish)


@pytest.mark.parametrize(
    "reason",
    [
        "error",  # vLLM, OpenRouter, Mistral
        "abort",  # vLLM, SGLang
        "aborted",  # DeepSeek
        "insufficient_system_resource",
        "network_error",  # Z.ai
        "ERROR",  # Cohere
        "load",  # Ollama
    ],
)
def test_an_answer_that_the_server_broke_off_is_asked_for_again(reason: str) -> None:
    with pytest.raises(FailedAnswer, match=f"finish_reason '{reason}' after 'move left'") as failed:
        read_completion(answer(reason))
    assert failed.value.passing
    with pytest.raises(FailedAnswer, match=f"finish_reason '{reason}'$") as failed:
        read_completion(answer(reason, content=None))
    assert failed.value.passing


@pytest.mark.parametrize(
    "reason",
    ["content_filter", "sensitive", "SAFETY", "refusal", "tool_calls", "function_call", "newest"],
)
def test_an_answer_that_is_no_action_is_lost(reason: str) -> None:
    with pytest.raises(FailedAnswer, match=f"finish_reason '{reason}' after 'move left'") as failed:
        read_completion(answer(reason))
    assert not failed.value.passing


def several(*indices: int | None) -> dict[str, Any]:
    (choice,) = answer()["choices"]
    texts = [{**choice, "index": i, "message": {"content": f"text {i}"}} for i in indices]
    return {"choices": texts}


def test_of_several_choices_the_one_with_index_0_is_played() -> None:
    assert read_completion(several(1, 0)).text == "text 0"


def test_the_token_count_of_several_choices_is_not_that_of_the_played_one() -> None:
    usage = {"completion_tokens": 12}
    assert read_completion({**several(0), "usage": usage}).tokens == 12
    assert read_completion({**several(0, 1), "usage": usage}).tokens is None


@pytest.mark.parametrize("indices", [(1, 2), (0, 0), (None, None)])
def test_several_choices_without_a_first_one_are_lost(indices: tuple[int | None, ...]) -> None:
    with pytest.raises(FailedAnswer, match=r"the answer has 2 choices, of which [02] have index 0"):
        read_completion(several(*indices))


def test_every_ending_that_openai_documents_is_in_the_table() -> None:
    documented = get_args(Choice.model_fields["finish_reason"].annotation)
    assert len(documented) == 5 and set(documented) <= set(ENDINGS)


LOST = {
    "a refusal": (
        answer(content=None, refusal="I cannot help with that."),
        "refuses: I cannot help with that.",
    ),
    "a refusal as a part": (answer(content=[{"type": "refusal", "refusal": "No."}]), "refuses: No"),
    "a call that nobody offered": (
        answer("tool_calls", content=None, tool_calls=[CALL]),
        "calls a tool 'search', though none is offered",
    ),
    "a call beside a text": (answer(content=TEXT, tool_calls=[CALL]), "calls a tool 'search'"),
    "a call without a name": (answer(content=None, tool_calls=["?"]), "calls a tool, though"),
    "reasoning alone": (answer(**REASONED), "reasoning, but no text.*max_tokens"),
    "reasoning beside an empty text": (
        answer("length", content="", reasoning_content="I should"),
        "reasoning, but no text",
    ),
    "reasoning beside a line break": (
        answer(content="\n\n", reasoning_content="I should"),
        "reasoning, but no text",
    ),
    "reasoning as a part": (
        answer(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "I"}]}]),
        "reasoning, but no text",
    ),
    "reasoning that only the usage counts": (
        answer(
            "length",
            content="",
            usage={"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 9}},
        ),
        "reasoning, but no text",
    ),
    "tokens that the server left out": (
        answer(content="", usage={"completion_tokens": 90}),
        "has 90 tokens, but no text",
    ),
    "an empty text at the limit": (answer("length", content=""), "no text .*max_tokens"),
    "LiteLLM's reasoning alone": (
        answer(content="", thinking_blocks=[{"type": "thinking", "thinking": "I should"}]),
        "reasoning, but no text",
    ),
    "no text within the limit": (answer("length", content=None), "no text .*max_tokens"),
    "a part that is no text": (
        answer(content=[{"type": "text", "text": "x"}, {"type": "image_url"}]),
        "a part of type 'image_url'",
    ),
    "half a surrogate pair": (answer(content="\ud800"), "no Unicode"),
}


@pytest.mark.parametrize("kind", LOST)
def test_what_the_model_did_instead_of_acting_is_lost_with_its_words(kind: str) -> None:
    body, line = LOST[kind]
    with pytest.raises(FailedAnswer, match=line) as failed:
        read_completion(body)
    assert not failed.value.passing


@pytest.mark.parametrize(
    "body",
    [
        answer(content=None),  # OpenRouter: a model that warms up may give nothing
        answer(None, content=None),
        answer(None, content=""),
        {"choices": [{"message": {"role": "assistant"}, "finish_reason": "stop"}]},
    ],
)
def test_an_answer_without_anything_is_asked_for_again(body: dict[str, Any]) -> None:
    with pytest.raises(FailedAnswer, match="no text") as failed:
        read_completion(body)
    assert failed.value.passing


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "move "}, {"type": "text", "text": "left"}], TEXT),
        (
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "I should"}]},  # Mistral
                {"type": "text", "text": TEXT},
            ],
            TEXT,
        ),
        ([{"type": "output_text", "text": TEXT, "annotations": []}], TEXT),
        ("", ""),
    ],
)
def test_a_text_is_played_whole_whatever_its_form(content: Any, text: str) -> None:
    assert read_completion(answer(content=content)).text == text


def test_an_answer_of_its_end_or_a_stop_string_alone_is_played() -> None:
    body = answer(content="", usage={"completion_tokens": 2})
    assert read_completion(body).text == ""
    body = answer("stop_sequence", content="", usage={"completion_tokens": 12})
    assert read_completion(body).text == ""  # the tokens are those of the stop string


@pytest.mark.parametrize("nothing", [{"tool_calls": []}, {"tool_calls": None}, {"refusal": ""}])
def test_empty_fields_beside_a_text_mean_nothing(nothing: dict[str, Any]) -> None:
    beside = {"content": TEXT, "reasoning": "I should", "function_call": None, **nothing}
    assert read_completion(answer(**beside)).text == TEXT


@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])  # vLLM, SGLang
@pytest.mark.parametrize(("value", "finish"), [("###", "stop"), (151645, "end"), (None, "end")])
def test_a_stop_string_is_told_from_an_end_token(field: str, value: Any, finish: str) -> None:
    body = answer()
    body["choices"][0][field] = value
    assert read_completion(body).finish == finish


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        ({"code": 502, "message": "upstream died"}, True),
        ({"code": 429, "message": "upstream died"}, True),
        ({"message": "upstream died"}, True),
        ({"code": 402, "message": "upstream died"}, False),
        ({"code": 403, "message": "upstream died"}, False),
    ],
)
def test_the_error_of_a_choice_comes_before_its_text(error: Any, passing: bool) -> None:
    body = answer("error")  # OpenRouter: a provider's error after a part of the answer
    body["choices"][0]["error"] = error
    with pytest.raises(FailedAnswer, match="upstream died") as failed:
        read_completion(body)
    assert failed.value.passing is passing


@pytest.mark.parametrize("reason", ["stop", None])  # Azure, also with an asynchronous filter
def test_a_text_that_a_filter_has_shortened_is_lost(reason: str | None) -> None:
    body = answer(reason)
    body["choices"][0]["content_filter_results"] = {"hate": {"filtered": True}}
    with pytest.raises(FailedAnswer, match="filter 'hate' has removed text") as failed:
        read_completion(body)
    assert not failed.value.passing
    body["choices"][0]["content_filter_results"] = {"hate": {"filtered": False}}
    assert read_completion(body).text == TEXT


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [{"text": "x", "finish_reason": "stop"}]},
        {"message": {"role": "assistant", "content": "x"}, "done": True},  # Ollama's own API
        answer(7),
        answer(content=7),
        {"code": "Throttling", "message": "too busy"},  # DashScope
        {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "too busy"}},  # MiniMax
        answer(content={"type": "text", "text": "x"}),
        {},
    ],
)
def test_what_is_no_chat_completion_is_quoted_and_asked_for_again(odd: dict[str, Any]) -> None:
    with pytest.raises(FailedAnswer) as failed:
        read_completion(odd)
    assert str(failed.value) == f"the answer is not a chat completion: {json.dumps(odd)}"
    assert failed.value.passing


def test_openais_own_type_writes_what_is_read() -> None:
    written = ChatCompletion.model_validate(
        {
            **answer(usage={"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}),
            "id": "a",
            "created": 1,
            "model": "m",
            "object": "chat.completion",
        }
    )
    completion = read_completion(written.model_dump(mode="json"))
    assert (completion.text, completion.finish, completion.tokens) == (TEXT, "end", 3)
