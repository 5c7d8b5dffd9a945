"""Rows and rollouts are the ids of the whole conversation as transformers writes them, for
tokenizers that write a space in front of a text."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest
from prefix_tokenizers import KINDS, prefix_tokenizer
from tiny import byte_tokenizer
from tokenizers import AddedToken

from colearn.contract.types import Action, Observation
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat
from colearn.training.learners.sft.dialogues import IGNORED, Dialogue, token_row

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set said = messages[1:] %}"
    "{% set role = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}"
    "{% else %}{% set said = messages %}{% set role = '' %}{% endif %}"
    "{% for m in said %}{% if m['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + (role if loop.first else '') + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'system' %}{{ m['content'] + '\n' }}"
    "{% else %}{{ m['content'] + eos_token }}{% endif %}{% endfor %}"
)
VICUNA = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'] + ' ' }}"
    "{% elif m['role'] == 'system' %}{{ m['content'] + ' ' }}"
    "{% else %}{{ 'ASSISTANT: ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TINY_LLAMA = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
BARE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ m['content'] + eos_token }}"
    "{% else %}{{ '<user>' + m['content'] + '<answer>' }}{% endif %}{% endfor %}"
)
TEMPLATES = {
    "zephyr": ZEPHYR,
    "llama_2": LLAMA_2,
    "mistral": MISTRAL,
    "vicuna": VICUNA,
    "chatml": CHATML,
    "tiny_llama": TINY_LLAMA,
    "bare": BARE,
}
MARKERS = {"chatml": ("<|im_start|>", "<|im_end|>"), "bare": ("<user>", "<answer>")}
DIALOGUES = {
    "one": (("Hello world", "blue"),),
    "three": (("One is\n\nred?", "Two  blue, é."), ("the  Two", "42"), ("{x}", "<a> Hello")),
}
SYSTEMS = {"no role": None, "a role": "Hello, the world."}
PAIRS = list(itertools.product(KINDS, TEMPLATES))


@cache
def tokenizer_of(kind: str, name: str) -> Any:
    return prefix_tokenizer(kind, template=TEMPLATES[name], special=MARKERS.get(name, ()))


def whole(tokenizer: Any, turns: Any, system: str | None, said: str | None = None) -> list[int]:
    """The ids that transformers writes for a conversation."""
    messages = [{"role": "system", "content": system}] if system else []
    for user, answer in turns:
        messages += [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
    messages += [] if said is None else [{"role": "user", "content": said}]
    ids = tokenizer.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=said is not None, return_dict=False
    )
    return list(ids)


@cache
def chat_of(tokenizer: Any, system: str | None) -> ChatFormat:
    return ChatFormat(tokenizer, system=system)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_row_has_the_ids_of_the_whole_conversation(kind: str, name: str, system: str) -> None:
    """Up to the last end token, behind which some templates write a line break."""
    tokenizer = tokenizer_of(kind, name)
    chat = chat_of(tokenizer, SYSTEMS[system])
    for turns in DIALOGUES.values():
        row = token_row(Dialogue("ada", turns), chat)
        ids = whole(tokenizer, turns, SYSTEMS[system])
        assert row["input_ids"] == ids[: len(row["input_ids"])]
        assert tokenizer.decode(ids[len(row["input_ids"]) :]).strip() == ""
        for number, (user, _) in enumerate(turns):
            prompt = whole(tokenizer, turns[:number], SYSTEMS[system], user)
            assert row["labels"][len(prompt) - 1 : len(prompt) + 1] == [IGNORED, ids[len(prompt)]]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_rollout_has_the_ids_of_the_whole_conversation(kind: str, name: str, system: str) -> None:
    tokenizer = tokenizer_of(kind, name)
    chat = chat_of(tokenizer, SYSTEMS[system])
    turns = DIALOGUES["three"]
    ids: list[int] = []
    last = None
    for number, (user, answer) in enumerate(turns):
        seen = chat.open(user) if last is None else chat.continuation(user, last)
        ids += seen.tokens
        assert ids == whole(tokenizer, turns[:number], SYSTEMS[system], user)
        sampled = whole(tokenizer, turns[: number + 1], SYSTEMS[system])[len(ids) :]
        sampled = sampled[: sampled.index(chat.end_id) + 1]
        assert chat.decode(tuple(sampled)).strip() == answer
        last = Action(answer, tuple(sampled), finish="end")
        ids += sampled


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_earlier_turns_of_a_prompt_have_the_ids_of_the_whole_conversation(
    kind: str, name: str
) -> None:
    tokenizer = tokenizer_of(kind, name)
    turns = DIALOGUES["three"]
    opened = chat_of(tokenizer, None).open_conversation(Observation("Two is?", turns=turns))
    assert list(opened) == whole(tokenizer, turns, None, "Two is?")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_was_cut_is_followed_by_no_space_of_the_tokenizer(kind: str) -> None:
    tokenizer = tokenizer_of(kind, "vicuna")
    chat = chat_of(tokenizer, None)
    first = whole(tokenizer, (), None, "One")
    sampled = whole(tokenizer, (("One", "Hello world"),), None)[len(first) : -1]
    after = chat.continuation("Two", Action("Hello world", tuple(sampled), finish="length"))
    assert [*first, *sampled, *after.tokens] == whole(
        tokenizer, (("One", "Hello world"),), None, "Two"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zephyr", "chatml"])
def test_a_quoted_special_token_adds_no_space(kind: str, name: str) -> None:
    tokenizer = tokenizer_of(kind, name)
    chat = chat_of(tokenizer, None)
    tokens = list(chat.open("red </s>blue").tokens)
    said = tokenizer("\nred </s>blue", add_special_tokens=False, split_special_tokens=True)
    head = tokenizer("\n", add_special_tokens=False)["input_ids"]
    quoted = said["input_ids"][len(head) :]
    before = whole(tokenizer, (), None, "red")
    begin = before.index(quoted[0])
    assert tokens[: begin + len(quoted)] == before[:begin] + quoted
    end = len(before) - before[::-1].index(quoted[0])
    assert len(tokens) - begin - len(quoted) == len(before) - end


@pytest.mark.parametrize("name", ["chatml", "zephyr"])
def test_a_marker_that_takes_the_space_behind_it_does_so_in_every_turn(name: str) -> None:
    """As Phi 3's markers do."""
    tokenizer = byte_tokenizer(template=TEMPLATES[name], special=("<pad>", "</s>"))
    markers = [AddedToken(mark, rstrip=True, special=True) for mark in MARKERS["chatml"]]
    tokenizer.add_special_tokens({"additional_special_tokens": markers})
    chat = chat_of(tokenizer, None)
    turns = DIALOGUES["three"]
    row = token_row(Dialogue("ada", turns), chat)["input_ids"]
    assert row == whole(tokenizer, turns, None)[: len(row)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_whose_prompt_ends_inside_a_token_is_refused_by_name(kind: str) -> None:
    source = VICUNA.replace("{{ 'ASSISTANT:' }}", "{{ 'ASSISTANT: ' }}")
    tokenizer = prefix_tokenizer(kind, template=source)
    prompt = whole(tokenizer, (), None, "One")
    assert whole(tokenizer, (("One", "Hello"),), None)[: len(prompt)] != prompt
    with pytest.raises(ConfigError, match=r"^agents\.chat: [^\n]*' ASSISTANT: '[^\n]*$"):
        ChatFormat(tokenizer)
