"""Dialogues on all chat templates that TRL ships are what the template writes for the whole."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import pytest
from tiny import byte_tokenizer

from colearn.contract.types import Action, Observation
from colearn.deploy.client.protocol.conversation import SentConversation
from colearn.deploy.export.template import write_template
from colearn.deploy.serve.requests import whole_history
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat
from colearn.training.learners.sft import Dialogue
from colearn.training.learners.sft.dialogues import IGNORED, token_row

pytest.importorskip("trl", reason="its templates are the reference")
SOURCES = {
    path.name.removesuffix(".jinja"): path.read_text(encoding="utf-8")
    for path in sorted(files("trl.chat_templates").iterdir(), key=lambda path: path.name)
    if path.name.endswith(".jinja")
}
PARTS_ONLY = ("idefics3", "llava_next", "smolvlm")
"""Their messages' contents are lists of parts, not texts."""
NAMES = [name for name in SOURCES if not name.startswith(PARTS_ONLY)]
_BAR = "\uff5c"
_SPECIAL = re.compile(
    rf"<\|[a-z_A-Z]+\|>|<{_BAR}[^{_BAR}>']+{_BAR}>|<(?:start|end)_of_turn>|<\|turn>|<turn\|>"
)
_ENDS = (
    "<|return|>",
    "<|im_end|>",
    f"<{_BAR}end\u2581of\u2581sentence{_BAR}>",
    "<end_of_turn>",
    "<turn|>",
    "<|eot_id|>",
    "<|END_RESPONSE|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end|>",
    "<|eot|>",
    "<|user|>",
)
TOOL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
DIALOGUES = {
    "one": (("What is seen?", "Two red\nblocks."),),
    "three": (("One?", "a, b."), ("Two?", "b"), ("Three?", "c")),
    "thought": (("One?", "<think>\nFirst.\n</think>\n\na"),),
    "thoughts": (
        ("One?", "<think>\nFirst.\n</think>\n\na"),
        ("Two?", "b"),
        ("Three?", "<think>\nThird.\n</think>\n\nc"),
    ),
    "a plain last": (("One?", "<think>\nFirst.\n</think>\n\na"), ("Two?", "b")),
    "tools": (
        ("One?", f"<think>\nI look.\n</think>\n\n{TOOL}"),
        ("<tool_response>red</tool_response>", "<think>\nSo.\n</think>\n\nred"),
    ),
    "tools without thoughts": (("One?", TOOL), ("<tool_response>red</tool_response>", "red")),
}
SYSTEMS = (None, "You build.")


def tokenizer_of(name):
    special = list(dict.fromkeys(_SPECIAL.findall(SOURCES[name])))
    end = next((mark for mark in _ENDS if mark in special), "</s>")
    others = [mark for mark in special if mark != end]
    tokenizer = byte_tokenizer(template=SOURCES[name], special=("<pad>", end, "<s>", *others))
    tokenizer.bos_token = "<s>"
    return tokenizer


@cache
def chat_of(name, system=None):
    return ChatFormat(tokenizer_of(name), system=system)


def rendered(chat, turns, system, said=None):
    """The template's own text of the whole dialogue."""
    messages = [{"role": "system", "content": system}] if system else []
    for user, answer in turns:
        messages += [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
    messages += [] if said is None else [{"role": "user", "content": said}]
    return chat.tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=said is not None
    )


def last_end(chat, text, expected):
    """What follows the last end token: Phi writes another, Cohere a turn's end; GLM has none."""
    end = chat.tokenizer.convert_ids_to_tokens(chat.end_id)
    rest = expected.removeprefix(text) if expected.startswith(text) else text.removeprefix(expected)
    return rest in ("", "\n", end, f"\n{end}", "<|END_OF_TURN_TOKEN|>")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_what_the_template_writes(name, system):
    if system is not None and name in ("gemma", "gemma_training"):
        pytest.skip("the template takes no system message")
    chat = chat_of(name, system)
    for dialogue in DIALOGUES if system is None else ("three",):
        turns = DIALOGUES[dialogue]
        text = chat.tokenizer.decode(token_row(Dialogue("ada", turns), chat)["input_ids"])
        expected = rendered(chat, turns, system)
        assert last_end(chat, text, expected), (dialogue, text, expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_labels_are_each_answer_from_its_prompt_to_its_end(name):
    chat = chat_of(name)
    for turns in DIALOGUES.values():
        row = token_row(Dialogue("ada", turns), chat)
        spans, inside = [], False
        for token, label in zip(row["input_ids"], row["labels"], strict=True):
            assert label in (token, IGNORED)
            if label != IGNORED:
                spans = [*spans[:-1], [*spans[-1], token]] if inside else [*spans, [token]]
            inside = label != IGNORED
        assert len(spans) == len(turns)
        for tokens, (_, answer) in zip(spans, turns, strict=True):
            text = chat.tokenizer.decode(tokens[:-1])
            assert text.endswith(answer.rpartition("</think>")[2].lstrip("\n"))
            assert "One?" not in text and "assistant" not in text
        if len(turns) == 1:
            prompt = rendered(chat, (), None, turns[0][0])
            masked = row["input_ids"][: row["labels"].count(IGNORED)]
            assert prompt.startswith(chat.tokenizer.decode(masked))


@pytest.mark.parametrize("name", NAMES)
def test_a_sent_conversation_is_what_the_template_writes(name):
    """As served from texts, and as the earlier turns of a prompt in training."""
    chat = chat_of(name)
    for turns in DIALOGUES.values():
        expected = rendered(chat, turns, None, "And now?")
        served = whole_history(SentConversation(None, turns, "And now?"), chat, None)
        opened = chat.open_conversation(Observation("And now?", turns=turns))
        assert tuple(served.ids) == opened
        assert chat.tokenizer.decode(list(opened)) == expected


def marks(text):
    return re.findall("</?think>", text)


@pytest.mark.parametrize("name", [name for name in NAMES if "</think>" in SOURCES[name]])
def test_a_history_of_training_has_no_double_and_no_open_block(name):
    """Actions as sampled: inside of the reasoning that a template opens, closed or cut there."""
    chat = chat_of(name)
    first = chat.open("One?")
    opened = chat.opened_reasoning("One?")
    for said in ("First.\n</think>\n\na", "First.") if opened else ("<think>\nFirst.", "a"):
        ids = chat.spell(said)
        for tokens in (ids, (*ids, chat.end_id)) if said.endswith("a") else (ids,):
            second = chat.continuation("Two?", Action(opened + said, tokens))
            text = chat.tokenizer.decode([*first.tokens, *tokens, *second.tokens])
            asked = text.removesuffix(opened)
            shown = asked[len(chat.tokenizer.decode(list(first.tokens))) - len(opened) :]
            found = marks(shown)
            assert found == ["<think>", "</think>"] * (len(found) // 2), shown


@pytest.mark.parametrize("name", ["qwen3_6", "deepseek_r1_distill", "nemotron_3_nano", "qwen3"])
def test_an_exported_template_writes_no_double_and_no_open_block(name):
    """An answer comes back as it was sampled, with its opening mark, or alone."""
    chat = chat_of(name)
    tokenizer = tokenizer_of(name)
    tokenizer.chat_template = write_template(chat.tokenizer)
    opened = chat.opened_reasoning("One?")
    sampled = "First.\n</think>\n\na" if opened else "<think>\nFirst.\n</think>\n\na"
    action = Action(opened + sampled, (*chat.spell(sampled), chat.end_id))
    ids = [*chat.open("One?").tokens, *action.tokens, *chat.continuation("Two?", action).tokens]

    def written(answer):
        said = [("user", "One?"), ("assistant", answer), ("user", "Two?")]
        messages = [{"role": role, "content": text} for role, text in said]
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    assert written(sampled) == written(opened + sampled) == tokenizer.decode(ids)
    assert written("a") == tokenizer.decode(ids).replace("<think>\nFirst.\n</think>\n\n", "")


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith(PARTS_ONLY)])
def test_a_template_of_parts_is_one_line(name):
    with pytest.raises(ConfigError, match=r"^agents\.chat: "):
        chat_of(name)
