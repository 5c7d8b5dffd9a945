"""Growing text: whole characters, and nothing that a stop takes back."""

from __future__ import annotations

from importlib.resources import files

import pytest
from tiny import byte_tokenizer

from colearn.deploy.serve.spelling import Spelling
from colearn.engines.growing_text import GrowingText
from colearn.rollout.agents import ChatFormat
from colearn.rollout.agents.token_bytes import token_bytes

CHAT = ChatFormat(byte_tokenizer())


def ids(text: str | bytes) -> list[int]:
    raw = text.encode() if isinstance(text, str) else text
    letters = {CHAT.spelled(n): n for n in range(len(CHAT.tokenizer))}
    return [letters[bytes([byte])] for byte in raw]


def grow(text: str | bytes, *, own: tuple[str, ...] = (), cut: tuple[str, ...] = ()) -> list[str]:
    """The parts as they are given, the last one by the end."""
    growing = GrowingText(CHAT, own, cut)
    parts = []
    for token in ids(text):
        parts.append(growing.push(token))
        if growing.stop is not None:
            break
    return [*parts, growing.finish()]


def test_plain_letters_come_one_by_one() -> None:
    assert grow("abc") == ["a", "b", "c", ""]


def test_a_character_comes_whole() -> None:
    assert grow("aé€😀") == ["a", "", "é", "", "", "€", "", "", "", "😀", ""]


def test_half_a_character_at_the_end_is_the_decoders_mark() -> None:
    assert grow(b"a\xe2\x82") == ["a", "", "", "\ufffd"]


def test_bytes_that_are_no_character_do_not_hold_the_rest_back() -> None:
    assert "".join(grow(b"\xffab\x80c")) == "\ufffdab\ufffdc"


def test_a_cut_stop_is_not_given() -> None:
    assert "".join(grow("one. two", cut=(". t",))) == "one"


def test_what_may_become_a_stop_is_held_back() -> None:
    assert grow("a..b", cut=("...",)) == ["a", "", "", "..b", ""]


def test_held_back_text_comes_at_the_end() -> None:
    assert grow("a..", cut=("...",)) == ["a", "", "", ".."]


def test_the_first_of_two_stops_cuts() -> None:
    assert "".join(grow("xaby", cut=("b", "ab"))) == "x"


def test_an_own_stop_stays_and_ends() -> None:
    assert "".join(grow("one. two", own=(".",))) == "one."


@pytest.mark.parametrize("text", ("é", "€", "a", " "))
def test_bytes_of_tokens_are_exact(text: str) -> None:
    assert token_bytes(CHAT, ids(text)) == [bytes([byte]) for byte in text.encode()]


def test_an_end_token_has_a_name_and_no_bytes() -> None:
    entry = Spelling(CHAT).entry(CHAT.end_id, -1.0, (), b"", b"", first=False)
    assert (entry["token"], entry["bytes"]) == ("<|end|>", [])


SECRET = "<|channel|>analysis<|message|>a secret<|end|>"
THOUGHT = "<think>a secret</think>"


@pytest.mark.parametrize(
    ("sampled", "text"),
    [
        (f"{SECRET}<|start|>assistant<|channel|>final<|message|>red.<|return|>", f"{THOUGHT}red."),
        (f"{SECRET}<|start|>assistant<|channel|>commentary<|message|>I look.", f"{THOUGHT}I look."),
        ("<|channel|>final<|message|>red<|return|>", "red"),
        ("red<|return|>", "red"),
        ("<|channel|>analysis<|message|>a se", "<think>a se"),
        # only <|end|> closes reasoning
        (
            "<|channel|>analysis<|message|>one<|channel|>final<|message|>two<|end|>red",
            "<think>onetwo</think>red",
        ),
    ],
)
def test_the_channels_of_gpt_oss_grow_into_the_whole_text(sampled: str, text: str) -> None:
    """What a message is depends on its header, which was forgotten after two tokens."""
    pytest.importorskip("trl", reason="its template is the reference")
    source = (files("trl.chat_templates") / "gptoss.jinja").read_text(encoding="utf-8")
    special = ("<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>")
    chat = ChatFormat(byte_tokenizer(template=source, special=("<|pad|>", *special)))
    tokens = chat.tokenizer(sampled, add_special_tokens=False)["input_ids"]
    growing = GrowingText(chat, ("assistant",), ())
    parts = [growing.push(token) for token in tokens]
    assert growing.stop is None
    assert "".join((*parts, growing.finish())) == text


@pytest.mark.parametrize(
    ("text", "own", "cut", "stop"),
    [
        ("ab.", (".", "!"), (), "."),
        ("ab!", (".", "!"), (), "!"),
        ("abc", ("c",), ("bc",), "bc"),
        ("abc", (), ("c", "bc"), "bc"),
        ("ab", (".",), ("!",), None),
    ],
)
def test_the_stop_string_that_ends_an_answer_is_known(
    text: str, own: tuple[str, ...], cut: tuple[str, ...], stop: str | None
) -> None:
    growing = GrowingText(CHAT, own, cut)
    for token in ids(text):
        growing.push(token)
    assert growing.stop == stop
