"""A model without a chat template or a pad token is told of, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import byte_tokenizer, save_model
from transformers import AutoTokenizer

from colearn.errors import ConfigError
from colearn.models.load import load_tokenizer
from colearn.rollout.agents import ChatFormat
from colearn.text.notes import note_once


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model whose tokenizer has neither."""
    note_once.cache_clear()
    save_model(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    path = tmp_path / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("pad_token", None)
    path.write_text(json.dumps(settings))
    return str(tmp_path)


def test_a_missing_pad_token_is_one_line_once(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = load_tokenizer(model, field="models.*.path")
    load_tokenizer(model, field="models.*.path")
    assert tokenizer.pad_token == tokenizer.eos_token
    assert capsys.readouterr().err == (
        f"note: models.*.path: {model} has no pad token; rows are filled with its end token "
        f"{tokenizer.eos_token!r}\n"
    )


def test_a_missing_template_is_one_line_once_and_only_if_it_is_looked_for(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = load_tokenizer(model, field="models.*.path")
    capsys.readouterr()
    ChatFormat(tokenizer, chat="plain")
    assert capsys.readouterr().err == ""
    for system in ("one", "another"):
        ChatFormat(tokenizer, system=system)
    assert capsys.readouterr().err == (
        f"note: agents.chat: {model} has no chat template; messages are written as plain text "
        "(chat: plain), or give a .jinja file\n"
    )


def test_a_model_with_both_is_not_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note_once.cache_clear()
    ChatFormat(load_tokenizer(save_model(tmp_path), field="models.*.path"))
    assert "note" not in capsys.readouterr().err


def several(folder: Path, *names: str) -> str:
    """A model whose tokenizer has a template by each name; the one of the tests, and lists."""
    save_model(folder)
    (folder / "chat_template.jinja").unlink()
    tokenizer = byte_tokenizer()
    own = tokenizer.chat_template
    tokenizer.chat_template = {n: own if n == "default" else "{{ messages }}" for n in names}
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_of_several_templates_the_default_is_used_as_in_transformers(tmp_path: Path) -> None:
    path = several(tmp_path, "rag", "default", "tool_use")
    said = [{"role": "user", "content": "hello"}]
    by_transformers = AutoTokenizer.from_pretrained(path).apply_chat_template(
        said, add_generation_prompt=True, return_dict=False
    )
    chat = ChatFormat(load_tokenizer(path, field="models.*.path"))
    assert list(chat.open("hello").tokens) == by_transformers


def test_several_templates_without_a_default_are_one_line(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(several(tmp_path, "tool_use", "rag"), field="models.*.path")
    line = "^agents.chat: the tokenizer has the templates rag, tool_use and none named default; "
    with pytest.raises(ConfigError, match=line):
        ChatFormat(tokenizer)
    assert ChatFormat(tokenizer, chat="plain").open("hello").tokens
