"""The exported chat template: training's ids from plain messages, never rewritten."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import TemplateError
from tiny import byte_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast

from colearn.config import SamplingSettings
from colearn.contract.types import Action
from colearn.deploy.export.agent_folders import save_generation_config
from colearn.deploy.export.template import spells_training, write_template
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat

QWEN = ("<|endoftext|>", "<|im_end|>", "<|im_start|>")
GEMMA = ("<pad>", "<end_of_turn>", "<start_of_turn>", "<bos>")
TEMPLATES = {"qwen2_5": QWEN, "qwen3": QWEN, "gemma3": GEMMA}
TURNS = (
    ("What is seen?\n", "Two red\nblocks, café."),
    ('  And now: {"x": 1}?', "<think>\nIt must be blue.\n</think>\n\nblue\n"),
    ("Last {{ turn }}. ", "None"),
)
ROLE = 'You "build" {% raw %} with C:\\new\n\tand 🧱 \u2028 {{ bricks }}.\n'


def tokenizer_of(name):
    template = files("trl.chat_templates").joinpath(f"{name}.jinja").read_text()
    tokenizer = byte_tokenizer(template=template, special=TEMPLATES[name])
    if name == "gemma3":
        tokenizer.bos_token = "<bos>"
    return tokenizer


def messages(count, system=None):
    """`count` observations with the answers between them."""
    history = [] if system is None else [{"role": "system", "content": system}]
    for seen, said in TURNS[:count]:
        history += [{"role": "user", "content": seen}, {"role": "assistant", "content": said}]
    return history[:-1]


def trained(chat, count):
    """The ids of training: each answer as it was sampled, with the end token."""
    ids, last = (), None
    for seen, said in TURNS[:count]:
        after = chat.open(seen) if last is None else chat.continuation(seen, last)
        tokens = (*chat.tokenizer(said, add_special_tokens=False)["input_ids"], chat.end_id)
        ids += (*(last.tokens if last else ()), *after.tokens)
        last = Action(said, tokens)
    return list(ids)


def exported(tokenizer, folder, **settings):
    """The tokenizer as somebody else loads it."""
    tokenizer.chat_template = write_template(tokenizer, **settings)
    tokenizer.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def spelt(tokenizer, said, *, prompt=True):
    return tokenizer.apply_chat_template(said, add_generation_prompt=prompt)["input_ids"]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("system", [None, ROLE])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_messages_become_the_ids_of_training(name, system, count, tmp_path):
    chat = ChatFormat(tokenizer_of(name), system=system)
    loaded = exported(tokenizer_of(name), tmp_path, system=system)
    assert spelt(loaded, messages(count)) == trained(chat, count)


@pytest.mark.parametrize("template", ["qwen3", None])
def test_plain_text_becomes_the_ids_of_training(template, tmp_path):
    tokenizer = tokenizer_of(template) if template else byte_tokenizer(template=None)
    chat = ChatFormat(tokenizer, chat="plain", system=ROLE)
    loaded = exported(tokenizer, tmp_path, chat="plain", system=ROLE)
    assert spelt(loaded, messages(3)) == trained(chat, 3)


def test_a_template_of_the_users_own_becomes_the_ids_of_training(tmp_path):
    path = tmp_path / "own.jinja"
    path.write_text(
        "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    chat = ChatFormat(byte_tokenizer(), chat=str(path), system=ROLE)
    loaded = exported(byte_tokenizer(), tmp_path / "out", chat=str(path), system=ROLE)
    assert spelt(loaded, messages(3)) == trained(chat, 3)


@pytest.mark.parametrize("name", TEMPLATES)
def test_training_s_format_reads_the_exported_template_as_it_read_the_first(name, tmp_path):
    first = ChatFormat(tokenizer_of(name), system=ROLE)
    again = ChatFormat(exported(tokenizer_of(name), tmp_path, system=ROLE), system=ROLE)
    assert again.open("x").tokens == first.open("x").tokens
    assert again.end_ids == first.end_ids and again.end_id == first.end_id
    for last in (Action("a", (50, first.end_id)), Action("a", (50,), finish="length")):
        assert again.continuation("y", last).tokens == first.continuation("y", last).tokens


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_system_message_takes_the_role_prompts_place(name):
    tokenizer = tokenizer_of(name)
    other = ChatFormat(tokenizer_of(name), system="Be brief.")
    tokenizer.chat_template = write_template(tokenizer, system=ROLE)
    assert spelt(tokenizer, messages(2, "Be brief.")) == trained(other, 2)


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_empty_system_message_says_no_role_prompt(name):
    tokenizer = tokenizer_of(name)
    tokenizer.chat_template = write_template(tokenizer, system=ROLE)
    assert spelt(tokenizer, messages(2, "")) == trained(ChatFormat(tokenizer_of(name)), 2)


def test_an_answer_without_a_marker_behind_it_is_closed_by_the_end_token():
    """As in training, where the agent samples it."""
    template = (
        "{% for m in messages %}\n[{{ m['role'] }}] {{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}\n[assistant] {% endif %}"
    )
    tokenizer = byte_tokenizer(template=template)
    chat = ChatFormat(byte_tokenizer(template=template))
    tokenizer.chat_template = write_template(tokenizer)
    assert spelt(tokenizer, messages(3)) == trained(chat, 3)


def test_a_last_answer_ends_with_the_end_token():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = write_template(tokenizer)
    said = [*messages(1), {"role": "assistant", "content": "ok"}]
    text = tokenizer.apply_chat_template(said, tokenize=False)
    assert text == "<|user|>What is seen?\n<|assistant|>ok<|end|>"


def test_an_answer_begun_is_gone_on_with():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = write_template(tokenizer)
    said = [*messages(1), {"role": "assistant", "content": "ok"}]
    text = tokenizer.apply_chat_template(said, tokenize=False, continue_final_message=True)
    assert text == "<|user|>What is seen?\n<|assistant|>ok"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ([{"role": "assistant", "content": "a"}], "user and assistant in turn"),
        ([{"role": "user", "content": "a"}] * 2, "user and assistant in turn"),
        ([{"role": "tool", "content": "a"}], "user and assistant in turn"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}]}], "must be text"),
    ],
)
def test_messages_that_training_never_wrote_are_refused(said, line):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = write_template(tokenizer)
    with pytest.raises(TemplateError, match=line):
        spelt(tokenizer, said)


def test_tools_are_refused():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = write_template(tokenizer)
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with pytest.raises(TemplateError, match="without tools"):
        tokenizer.apply_chat_template(messages(1), tools=[tool])


def test_a_template_that_drops_a_turn_is_a_config_error():
    with pytest.raises(ConfigError, match=r"agents\.chat: the template drops or repeats"):
        write_template(byte_tokenizer(template="{{ messages[-1]['content'] }}<|assistant|>"))


def test_a_system_message_that_the_format_has_no_place_for_is_refused():
    tokenizer = byte_tokenizer(template="{% set messages = messages[-3:] %}" + _only_turns())
    tokenizer.chat_template = write_template(tokenizer)
    with pytest.raises(TemplateError, match="takes no system message"):
        spelt(tokenizer, messages(1, "Be brief."))


def _only_turns() -> str:
    return (
        "{% for m in messages if m['role'] != 'system' %}<|{{ m['role'] }}|>{{ m['content'] }}"
        "{% if m['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}<|assistant|>"
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_byte_tokenizer_spells_training(name):
    tokenizer = tokenizer_of(name)
    chat = ChatFormat(tokenizer_of(name))
    tokenizer.chat_template = write_template(tokenizer)
    assert spells_training(tokenizer, chat)


def bracketed(merges, **metaspace):
    """A tokenizer of letters under a template that writes roles in brackets."""
    words = ["<pad>", "<end>", "<unk>", "▁", *"\nabcdefghijklmnopqrstuvwxyz[] 0123456789"]
    words += [first + second for first, second in merges]
    tokenizer = Tokenizer(
        models.BPE({w: n for n, w in enumerate(words)}, merges, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**metaspace)
    tokenizer.decoder = decoders.Metaspace()
    template = (
        "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}"
        "{% if m['role'] == 'assistant' %}<end>{% endif %}{% endfor %}[assistant]"
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", chat_template=template
    )


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
def test_a_tokenizer_that_marks_where_a_text_begins_spells_training(scheme):
    """Continuations were texts of their own, with a mark that the whole conversation lacks."""
    tokenizer = bracketed([], prepend_scheme=scheme)
    chat = ChatFormat(tokenizer)
    tokenizer.chat_template = write_template(tokenizer)
    assert spells_training(tokenizer, chat)


def test_a_tokenizer_that_joins_a_prompt_with_an_answer_does_not_spell_training():
    tokenizer = bracketed([("t", "w"), ("]", "tw")], prepend_scheme="never", split=False)
    chat = ChatFormat(tokenizer)
    tokenizer.chat_template = write_template(tokenizer)
    assert not spells_training(tokenizer, chat)


def generation_config(folder: Path, **sampling) -> GenerationConfig:
    """As written and read again; the strict check raises for whatever would be warned of."""
    save_generation_config(SamplingSettings(**sampling), ChatFormat(byte_tokenizer()), folder)
    loaded = GenerationConfig.from_pretrained(folder)
    loaded.validate(strict=True)
    return loaded


def test_sampling_settings_are_those_of_training(tmp_path):
    generation = generation_config(tmp_path, temperature=0.7, top_p=0.9, top_k=40, max_tokens=17)
    assert generation.do_sample is True and generation.max_new_tokens == 17
    assert (generation.temperature, generation.top_p, generation.top_k) == (0.7, 0.9, 40)
    assert generation.eos_token_id == [1] and generation.pad_token_id == 0


def test_no_top_k_is_not_the_fifty_of_transformers(tmp_path):
    assert generation_config(tmp_path).top_k == 0


def test_greedy_is_a_valid_setting_without_a_warning(tmp_path):
    generation = generation_config(tmp_path, temperature=0.0, top_p=0.9)
    assert generation.do_sample is False and generation.temperature is None


def test_every_end_token_is_an_end_token_for_transformers(tmp_path):
    tokenizer = tokenizer_of("qwen2_5")
    tokenizer.eos_token = "<|endoftext|>"
    save_generation_config(SamplingSettings(), ChatFormat(tokenizer), tmp_path)
    assert GenerationConfig.from_pretrained(tmp_path).eos_token_id == [0, 1]
