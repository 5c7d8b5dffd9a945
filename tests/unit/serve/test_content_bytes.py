"""An answer's content is the bytes of its tokens, in serve and in the gateway, over tokenizers,
reasoning, stop strings, calls and streams."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from prefix_tokenizers import KINDS, prefix_tokenizer
from tiny import byte_tokenizer

from colearn.contract import SampledAction, Sampling, TokenHistory, TokenRequest
from colearn.contract.types import Action, AnswerLimits, Observation
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.serve.completion import ChatAnswer
from colearn.deploy.serve.spelling import Spelling
from colearn.engines.job import DecodingRow, Job
from colearn.programs.gateway.answer import completion
from colearn.programs.gateway.contexts import Context
from colearn.programs.gateway.state import GatewayCall
from colearn.rollout.agents import AgentSpec, ChatFormat, Language
from colearn.rollout.agents.token_bytes import token_bytes

THINK = ("<think>", "</think>")
CHATS = {
    "bytes": ChatFormat(byte_tokenizer()),
    "merged bytes": ChatFormat(byte_tokenizer(merges=True)),
    "special tags": ChatFormat(byte_tokenizer(special=("<|pad|>", "<|end|>", *THINK))),
    **{kind: ChatFormat(prefix_tokenizer(kind)) for kind in KINDS},
}
CALL = '<tool_call>{"name": "look", "arguments": {"at": "é"}}</tool_call>'
PASSAGES = (
    *("Hello", " world", " the  blue", "\n", " ", "é€😀", "日本", "<", "a < b", "STOP", "ST", "."),
    *("<think>", "</think>", "</think>\n\n", "<think>hm é</think> ", CALL, f" {CALL}\n"),
)
OPENED = ("", "<think>\n")
STOPS = ("STOP", "\n\n", "é", "d the")


def sampled(chat: ChatFormat, seed: int) -> list[int]:
    """Tokens as a model may draw them: passages, parts of characters, any token, an end."""
    draw = random.Random(seed)
    tokens: list[int] = []
    for _ in range(draw.randint(1, 12)):
        match draw.randrange(5):
            case 0:
                tokens += draw.choices(range(len(chat.tokenizer)), k=draw.randint(1, 4))
            case 1:
                ids = chat.spell(draw.choice("é€😀日"))
                tokens += ids[: draw.randint(1, len(ids))]
            case _:
                tokens += chat.spell(draw.choice(PASSAGES))
    tokens = [token for token in tokens if token not in chat.end_ids]
    return [*tokens, chat.end_id] if draw.random() < 0.5 or not tokens else tokens


def asked(**fields: Any) -> ChatRequest:
    body = {"messages": [{"role": "user", "content": "hello"}], "logprobs": True, **fields}
    return ChatRequest.model_validate(body)


SEEDS = 6
TOOLS = [{"type": "function", "function": {"name": "look"}}]


def decoded(
    chat: ChatFormat, tokens: Sequence[int], stops: tuple[str, ...], *, streams: bool = False
) -> Job:
    """A job whose choice has drawn these tokens, up to its end."""
    history = TokenHistory().observe((5,), None)
    limits = Sampling(max_tokens=len(tokens))
    request = TokenRequest(agent="ada", history=history, sampling=limits, seeds=(0,))
    job = Job(request, chat, streams=streams, cut_stops=stops, top_logprobs=2)
    row = DecodingRow(job, 0)
    for number, token in enumerate(tokens):
        row.push(token, -0.5 - number)
        row.choice.top.append(((token, -0.5 - number), (number, -9.0)))
        if row.ended:
            break
    row.finish()
    return job


def check(content: str | None, logprobs: Any, job: Job) -> None:
    """The property: bytes, joined, are the content; log-probabilities are those of the tokens."""
    (choice,) = job.choices
    entries = logprobs["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == (content or "").encode()
    assert [entry["logprob"] for entry in entries] == choice.logprobs


FORMS = pytest.mark.parametrize(
    ("stops", "opened", "tools"),
    [((), "", []), (STOPS, "<think>\n", TOOLS)],
    ids=["plain", "stops, reasoning and tools"],
)


@FORMS
@pytest.mark.parametrize("name", CHATS)
def test_content_is_the_bytes_of_its_tokens(
    name: str, stops: tuple[str, ...], opened: str, tools: Any
) -> None:
    chat, request = CHATS[name], asked(tools=tools)
    spelling = Spelling(chat)
    for seed in range(SEEDS):
        job = decoded(chat, sampled(chat, seed), stops)
        answer = ChatAnswer("ada", job, spelling, request, opened=opened)
        (whole,) = answer.whole()["choices"]
        check(whole["message"]["content"], whole["logprobs"], job)


def call(**fields: Any) -> GatewayCall:
    context = Context(None, (("user", "hello"),))
    return GatewayCall(
        number=0,
        name="ada",
        text="hello",
        request="chatcmpl-0",
        context=context,
        reason="first",
        **fields,
    )


@FORMS
@pytest.mark.parametrize("name", CHATS)
def test_content_is_the_bytes_of_its_tokens_in_the_gateway(
    name: str, stops: tuple[str, ...], opened: str, tools: Any
) -> None:
    chat = CHATS[name]
    player = Language(engine=None, agent="ada", spec=AgentSpec(chat=chat))  # type: ignore[arg-type]
    prompt = Observation("hello", limits=AnswerLimits(stop=stops))
    asked = call(prompt=prompt, offered=("look",) if tools else (), logprobs=True)
    for seed in range(SEEDS):
        job = decoded(chat, sampled(chat, seed), ())
        (choice,) = job.choices
        action = Action(opened + choice.text, tuple(choice.tokens), tuple(choice.logprobs))
        (told,) = completion(asked, SampledAction(action, player, (5,) * 5))[0]["choices"]
        check(told["message"]["content"], told["logprobs"], job)


@pytest.mark.parametrize("opened", OPENED, ids=["no reasoning", "opened reasoning"])
@pytest.mark.parametrize("stop", ["\n", "k>", "e"])
@pytest.mark.parametrize("name", CHATS)
def test_the_gateway_cuts_an_answer_where_a_served_agent_does(
    name: str, stop: str, opened: str
) -> None:
    """A stop string in the mark by which the prompt opens reasoning left no content."""
    chat = CHATS[name]
    request = ChatRequest.model_validate({"messages": [{"role": "user", "content": "hello"}]})
    prompt = Observation("hello", limits=AnswerLimits(stop=(stop,)))
    for seed in range(SEEDS):
        tokens = [*chat.spell("hm</think>Blue."), *sampled(chat, seed)]
        job = decoded(chat, tokens, (stop,))
        (choice,) = job.choices
        drawn = tuple(choice.tokens)
        (served,) = ChatAnswer("ada", job, None, request, opened=opened).whole()["choices"]
        action = Action(opened + chat.decode(drawn), drawn, tuple(choice.logprobs), choice.finish)
        (told,) = completion(call(prompt=prompt), SampledAction(action))[0]["choices"]
        assert told == served


@pytest.mark.parametrize("name", CHATS)
def test_a_stream_has_the_text_of_the_whole_answer(name: str) -> None:
    """A byte that completes no character turned earlier characters of one tokenizer into marks."""
    chat = CHATS[name]
    for seed in range(SEEDS):
        tokens = sampled(chat, seed)
        job = decoded(chat, tokens, (), streams=True)
        assert job.choices[0].text == chat.decode(tuple(tokens))


BYTES = {
    ("bytes", "é€a"): [*(bytes([byte]) for byte in "é€a".encode())],
    ("merged bytes", "and é"): [b"and", b" ", b"\xc3", b"\xa9"],
    ("prepend", "\nHello the é€"): [
        *(b"\n", b"Hello", b" the", b" ", b"\xc3", b"\xa9", b"\xe2", b"\x82", b"\xac")
    ],
    ("always", "\nHello the é"): [b"\n", b"Hello", b" the", b" ", b"\xc3", b"\xa9"],
}


@pytest.mark.parametrize(("name", "text"), BYTES)
def test_the_parts_of_a_character_are_the_tokens_own_bytes(name: str, text: str) -> None:
    chat = CHATS[name]
    assert token_bytes(chat, chat.spell(text)) == BYTES[name, text]
    assert token_bytes(chat, (*chat.spell(text), chat.end_id)) == [*BYTES[name, text], b""]


@pytest.mark.parametrize("kind", ["prepend", "always", "first"])
def test_the_first_words_space_is_no_part_of_the_content(kind: str) -> None:
    tokenizer = CHATS[kind].tokenizer
    tokens = [tokenizer.convert_tokens_to_ids(word) for word in ("▁Hello", "▁the", "▁blue")]
    assert token_bytes(CHATS[kind], tokens) == [b"Hello", b" the", b" blue"]


def test_alternatives_are_spelled_as_they_would_follow() -> None:
    chat = CHATS["prepend"]
    ids = [chat.tokenizer.convert_tokens_to_ids(word) for word in ("▁Hello", "▁the", "<0xC3>")]
    top = tuple((token, -1.0) for token in ids)
    spelling = Spelling(chat)
    first = spelling.entry(ids[0], -1.0, top, b"Hello", b"Hello", first=True)["top_logprobs"]
    later = spelling.entry(ids[1], -1.0, top, b" the", b" the", first=False)["top_logprobs"]
    assert [bytes(one["bytes"]) for one in first] == [b"Hello", b"the", b"\xc3"]
    assert [bytes(one["bytes"]) for one in later] == [b" Hello", b" the", b"\xc3"]
