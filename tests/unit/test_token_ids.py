"""Encoding of texts in several threads, as in the free order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tiny import byte_tokenizer

from colearn.rollout.agents import ChatFormat


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_that_share_a_tokenizer_do_not_change_what_the_others_encode() -> None:
    """A quoted end token ended the turn, and a template's markers were split into letters."""
    chat = ChatFormat(byte_tokenizer())
    user, end = chat.tokenizer.convert_tokens_to_ids(["<|user|>", "<|end|>"])

    def is_right(number: int) -> bool:
        quotes = number % 2 == 0
        tokens = chat.open(f"{number} {'<|end|>' if quotes else ''} {'x' * 500}").tokens
        return tokens[0] == user and end not in tokens

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(is_right, range(800)))
