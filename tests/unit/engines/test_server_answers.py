"""A vLLM server's answer as bytes: what is no JSON, and what says two things at once."""

from __future__ import annotations

import pytest

from colearn.engines.server_answers import decode_json


def test_an_answer_is_decoded_with_its_numbers() -> None:
    assert decode_json(b'{"a": [1, -0.5, "\\u2603"]}') == {"a": [1, -0.5, "\u2603"]}


@pytest.mark.parametrize(
    "content",
    [
        b'{"token_ids": [1], "token_ids": [2]}',
        b'{"choices": [{"logprob": -1.0, "logprob": -2.0}]}',
        b'{"logprob": NaN}',
        b'{"logprob": -1e999}',
        b'"\\ud800"',
        b'"\xff"',
        b"[" * 100_000,
        b"",
    ],
)
def test_an_answer_that_is_no_json_or_repeats_a_key_is_none(content: bytes) -> None:
    assert decode_json(content) is None
