"""What a client receives of an answer that reasons."""

from __future__ import annotations

import json

import pytest
from tiny import byte_tokenizer

from colearn.agents import ChatFormat
from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.generate.job import Job, TokenDrawn
from colearn.serve.completion import ChatAnswer


def answer(text: str, opened: str = "") -> ChatAnswer:
    history = TokenHistory().observe((5,), None)
    request = TokenRequest(agent="ada", history=history, sampling=Sampling(), seeds=(0,))
    job = Job(request, ChatFormat(byte_tokenizer()))
    job.choices[0].text = text
    return ChatAnswer("ada", job, None, opened=opened)


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
