"""Samples of an engine elsewhere: why an action ended, and what is no action of its request."""

from __future__ import annotations

import pytest
from tiny import byte_tokenizer

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.engines.checked_engine import BadSample, whole_action
from colearn.rollout.agents import ChatFormat

CHAT = ChatFormat(byte_tokenizer())


def request(max_tokens: int, *stop: str) -> TokenRequest:
    sampling = Sampling(max_tokens=max_tokens, stop=stop)
    return TokenRequest(agent="ada", history=TokenHistory(), sampling=sampling, seeds=(0,))


def ids(text: str) -> tuple[int, ...]:
    return tuple(byte_tokenizer()(text, add_special_tokens=False)["input_ids"])


def test_an_action_cut_at_the_requests_limit_is_one_of_full_length() -> None:
    """The agent's own limit may be longer: an observation sets one of its own."""
    assert whole_action(request(3), ids("abc"), CHAT) == ("abc", "length")


def test_an_end_token_at_the_limit_is_an_end() -> None:
    assert whole_action(request(3), (*ids("ab"), CHAT.end_id), CHAT) == ("ab", "end")


def test_a_stop_string_ends_an_action() -> None:
    assert whole_action(request(9, "b", "c"), ids("abc")[:2], CHAT) == ("ab", "stop")


@pytest.mark.parametrize("stop", [(), ("xyz",)])
def test_an_action_that_stops_without_a_stop_string_was_cut(stop: tuple[str, ...]) -> None:
    with pytest.raises(BadSample, match="cut an action after 3 of 9 tokens"):
        whole_action(request(9, *stop), ids("abc"), CHAT)


def test_tokens_behind_a_stop_string_are_refused() -> None:
    with pytest.raises(BadSample, match="behind the end of an action"):
        whole_action(request(9, "b"), ids("abc"), CHAT)
