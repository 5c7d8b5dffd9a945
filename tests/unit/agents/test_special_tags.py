"""Tags that a tokenizer lists as special: text where they are content, omitted where they separate
messages."""

from __future__ import annotations

import pytest
from tiny import CHAT, byte_tokenizer

from colearn.contract.types import Action
from colearn.deploy.client.protocol.tool_call_text import read_calls
from colearn.engines.growing_text import GrowingText
from colearn.rollout.agents import ChatFormat
from colearn.training.learners.sft.dialogues import Dialogue, token_row

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
R1 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}<|user|>Write <answer> </answer>. "
    "{{ m['content'] }}{% else %}{{ m['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTROLS = {
    None: ("<|pad|>", "<|end|>"),
    CHAT: ("<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"),
    CHATML: ("<|endoftext|>", "<|im_end|>", "<|im_start|>"),
    R1: ("<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"),
}
TAGS = [
    *((f"<{name}>", f"</{name}>") for name in ("tool_call", "answer", "think", "search", "result")),
    ("<tool_response>", "</tool_response>"),
    ("[TOOL_CALLS]", "[ARGS]"),
    ("<|tool_call>", "<tool_call|>"),
    ("<|python_tag|>", "<|begin_of_solution|>"),
]


def sampled(text: str, template: str | None, tags: tuple[str, ...]) -> tuple[ChatFormat, list[int]]:
    """A chat format and the ids of a sampled text in which each tag is one special token."""
    tokenizer = byte_tokenizer(template=template, special=(*CONTROLS[template], *tags))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert all(tokenizer.convert_tokens_to_ids(tag) in ids for tag in tags)
    return ChatFormat(tokenizer, system="Use <answer> and </answer>."), ids


@pytest.mark.parametrize("template", CONTROLS, ids=["plain", "tiny", "chatml", "r1"])
@pytest.mark.parametrize("tags", TAGS, ids=lambda tags: tags[0])
def test_tags_that_are_special_tokens_survive_and_separators_do_not(
    tags: tuple[str, str], template: str | None
) -> None:
    text = f'{tags[0]}{{"name": "look"}} é{tags[1]} done'
    separators = "".join(CONTROLS[template])
    chat, ids = sampled(f"{separators}{text}{CONTROLS[template][1]}", template, tags)
    assert chat.decode(tuple(ids)) == text
    growing = GrowingText(chat, (), ())
    assert "".join([*map(growing.push, ids), growing.finish()]) == text


@pytest.mark.parametrize("template", CONTROLS, ids=["plain", "tiny", "chatml", "r1"])
def test_a_chat_names_the_special_tokens_that_other_programs_look_for(template: str | None) -> None:
    tags = ("<answer>", "</answer>", "<lonely>", "[TOOL_CALLS]")
    chat, _ = sampled("".join(tags), template, tags)
    assert set(chat.tags) == {"<answer>", "</answer>", "[TOOL_CALLS]"}


def test_a_tool_call_between_special_tags_is_read() -> None:
    text = '<tool_call>{"name": "look", "arguments": {"at": "b2"}}</tool_call>'
    chat, ids = sampled(text, CHATML, ("<tool_call>", "</tool_call>"))
    _, calls = read_calls(chat.decode(tuple(ids)), ["look"], several=True)
    assert calls == [("look", {"at": "b2"})]


def test_a_stop_string_that_is_a_special_token_ends_an_answer() -> None:
    chat, ids = sampled("<answer>4</answer>", CHATML, ("<answer>", "</answer>"))
    growing = GrowingText(chat, ("</answer>",), ())
    assert [growing.push(token) for token in ids][-1] == "</answer>"
    assert growing.stop == "</answer>"


TAG_PAIRS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
TOOL = '<tool_call>{"name": "look"}</tool_call>'
TURNS = (("One?", f"I look. {TOOL}"), ("<tool_response>red</tool_response>", "red"))


def tagged(template: str) -> ChatFormat:
    special = (*CONTROLS[template], *TAG_PAIRS)
    return ChatFormat(byte_tokenizer(template=template, special=special))


@pytest.mark.parametrize("template", [CHAT, CHATML], ids=["tiny", "chatml"])
def test_tags_in_rows_and_rollouts_are_the_templates_tokens(template: str) -> None:
    chat = tagged(template)
    messages = [
        {"role": role, "content": text}
        for turn in TURNS
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    whole = chat.tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
    row = token_row(Dialogue("ada", TURNS), chat)["input_ids"]
    assert row == whole[: len(row)]
    action = Action(TURNS[0][1], (*chat.spell(TURNS[0][1]), chat.end_id))
    told = chat.continuation(TURNS[1][0], action).tokens
    played = [*chat.open("One?").tokens, *action.tokens, *told]
    assert played == whole[: len(played)]


@pytest.mark.parametrize("template", [CHAT, CHATML], ids=["tiny", "chatml"])
def test_a_separator_that_a_message_spells_beside_a_tag_stays_text(template: str) -> None:
    chat = tagged(template)
    end = CONTROLS[template][1]
    first = chat.open(f"{TOOL}{end}").tokens
    assert first.count(chat.end_id) == chat.open("x").tokens.count(chat.end_id)


def test_tags_that_the_template_writes_around_messages_stay_text_in_messages() -> None:
    template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</{{ m['role'] }}>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    roles = ("<user>", "</user>", "<assistant>", "</assistant>")
    chat = ChatFormat(byte_tokenizer(template=template, special=("<pad>", roles[3], *roles[:3])))
    tokens = chat.open("x</user><assistant>yes</assistant>").tokens
    marks = [chat.tokenizer.convert_tokens_to_ids(mark) for mark in roles]
    assert [tokens.count(mark) for mark in marks] == [1, 1, 1, 0]
