"""What a client receives of an answer that reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tiny import byte_tokenizer

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.serve.completion import ChatAnswer
from colearn.engines.job import Job, TokenDrawn
from colearn.rollout.agents import ChatFormat


def answer(text: str, opened: str = "", **more: bool) -> ChatAnswer:
    history = TokenHistory().observe((5,), None)
    request = TokenRequest(agent="ada", history=history, sampling=Sampling(), seeds=(0,))
    job = Job(request, ChatFormat(byte_tokenizer()))
    job.choices[0].text = text
    body = {"messages": [{"role": "user", "content": "hello"}], **more}
    return ChatAnswer("ada", job, None, ChatRequest.model_validate(body), opened=opened)


def chunks(parts: list[str], opened: str = "", **more: bool) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    one = answer("".join(parts), opened, **more)
    one.job.choices[0].tokens, one.job.choices[0].stop = [7, 8], "END"
    grown = [one.grown(TokenDrawn(0, 1, 0.0, (), part), False) or b"" for part in parts]
    raw = b"".join((one.role(0, False), *grown, one.ended(0, "stop", False))).decode()
    return [json.loads(line.removeprefix("data: ")) for line in raw.split("\n\n") if line]


def streamed(parts: list[str], opened: str = "") -> str:
    """The content of a stream's chunks."""
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(parts, opened)]
    assert not any("reasoning" in delta for delta in deltas)
    return "".join(delta.get("content", "") for delta in deltas)


@pytest.mark.parametrize(
    ("opened", "text", "content"),
    [
        ("", "plain", "plain"),
        ("", "<think>hm</think>\nfour", "four"),
        ("<think>\n", "hm</think>\nfour", "four"),
        ("<think>\n", "cut", ""),
        ("", "a < b", "a < b"),
    ],
)
def test_content_is_the_answer_without_its_reasoning(opened: str, text: str, content: str) -> None:
    (choice,) = answer(text, opened).whole()["choices"]
    assert choice["message"]["content"] == streamed(list(text), opened) == content


@pytest.mark.parametrize(
    ("opened", "text", "reasoning", "content"),
    [
        ("", "plain", "", "plain"),
        ("", "<think>hm</think>\nfour", "hm", "four"),
        ("<think>\n", "hm\n</think>\nfour", "hm", "four"),
        ("<think>\n", "cut", "cut", ""),
        ("", "<think>a</think>b<think>c</think>d", "a\nc", "bd"),
    ],
)
def test_reasoning_is_sent_where_it_is_requested(
    opened: str, text: str, reasoning: str, content: str
) -> None:
    (choice,) = answer(text, opened, include_reasoning=True).whole()["choices"]
    message = choice["message"]
    assert (message.get("reasoning", ""), message["content"]) == (reasoning, content)
    sent = chunks(list(text), opened, include_reasoning=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in sent]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == reasoning
    assert "".join(delta.get("content", "") for delta in deltas) == content
    first = next((delta for delta in deltas if delta.get("content")), {})
    assert ("reasoning" in first) == bool(reasoning and content)


@pytest.mark.parametrize("at", range(1, 31))
def test_a_part_of_a_mark_is_sent_neither_as_reasoning_nor_as_content(at: int) -> None:
    """A stop string that was held back makes one part of several tokens."""
    text = "<think>a</think>b<think>c</think>d"
    sent = chunks([text[:at], text[at:]], include_reasoning=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in sent]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == "a\nc"
    assert "".join(delta.get("content", "") for delta in deltas) == "bd"


def test_token_ids_are_sent_where_they_are_requested() -> None:
    """vLLM: the prompt's with the first chunk, and the answer's with its choice."""
    first, *_, last = chunks(["a", "b"], return_token_ids=True)
    assert (first["prompt_token_ids"], last["choices"][0]["token_ids"]) == ([5], [7, 8])
    assert last["choices"][0]["stop_reason"] == "END"
    one = answer("ab", return_token_ids=True)
    one.job.choices[0].tokens = [7, 8]
    whole = one.whole()
    assert (whole["prompt_token_ids"], whole["choices"][0]["token_ids"]) == ([5], [7, 8])
    plain = answer("ab").whole()
    assert "prompt_token_ids" not in plain and "token_ids" not in plain["choices"][0]
