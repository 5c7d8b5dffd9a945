"""What a client receives of an answer that reasons."""

from __future__ import annotations

import json

import pytest
from tiny import byte_tokenizer

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.serve.completion import ChatAnswer
from colearn.deploy.serve.spelling import Spelling
from colearn.engines.job import Job, TokenDrawn
from colearn.rollout.agents import ChatFormat


def asked(*tools: str) -> ChatRequest:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    body = {"messages": [{"role": "user", "content": "hello"}], "tools": offered}
    return ChatRequest.model_validate(body)


def answer(text: str, opened: str = "") -> ChatAnswer:
    history = TokenHistory().observe((5,), None)
    request = TokenRequest(agent="ada", history=history, sampling=Sampling(), seeds=(0,))
    job = Job(request, ChatFormat(byte_tokenizer()))
    job.choices[0].text = text
    return ChatAnswer("ada", job, None, asked(), opened=opened)


def streamed(parts: list[str], opened: str = "") -> str:
    """The content of a stream's chunks."""
    one = answer("".join(parts), opened)
    chunks = [one.grown(TokenDrawn(0, 1, 0.0, (), part), False) or b"" for part in parts]
    raw = b"".join((*chunks, one.ended(0, "end", False))).decode()
    deltas = [json.loads(line.removeprefix("data: ")) for line in raw.split("\n\n") if line]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in deltas)


CASES = [
    ("", "plain", "plain"),
    ("", "<think>hm</think>\nfour", "four"),
    ("<think>\n", "hm</think>\nfour", "four"),
    ("<think>\n", "cut", ""),
    ("", "a < b", "a < b"),
]


@pytest.mark.parametrize(("opened", "text", "content"), CASES)
def test_content_is_the_answer_without_its_reasoning(opened: str, text: str, content: str) -> None:
    (choice,) = answer(text, opened).whole()["choices"]
    assert choice["message"]["content"] == content


@pytest.mark.parametrize(("opened", "text", "content"), CASES)
def test_a_stream_has_the_same_content(opened: str, text: str, content: str) -> None:
    assert streamed(list(text), opened) == content


def test_a_stream_with_tools_has_the_log_probabilities_of_the_whole_answer() -> None:
    history = TokenHistory().observe((5,), None)
    request = TokenRequest(agent="ada", history=history, sampling=Sampling(), seeds=(0,))
    job = Job(request, ChatFormat(byte_tokenizer()), top_logprobs=1)
    choice = job.choices[0]
    choice.text, choice.tokens, choice.logprobs = "ab", [100, 101], [-0.5, -0.25]
    choice.top = [((100, -0.5),), ((101, -0.25),)]
    one = ChatAnswer("ada", job, Spelling(ChatFormat(byte_tokenizer())), asked("look"))
    drawn = [
        TokenDrawn(0, 100, -0.5, choice.top[0], "a"),
        TokenDrawn(0, 101, -0.25, choice.top[1], "b"),
    ]
    raw = b"".join(
        (*(one.grown(token, False) or b"" for token in drawn), one.ended(0, "end", False))
    )
    chunks = [
        json.loads(line.removeprefix("data: ")) for line in raw.decode().split("\n\n") if line
    ]
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    (whole,) = one.whole()["choices"]
    assert [entry for part in streamed if part for entry in part["content"]] == (
        whole["logprobs"]["content"]
    )
    assert [entry["logprob"] for entry in whole["logprobs"]["content"]] == [-0.5, -0.25]
