"""Words of a chat: those that the model has no embedding for, and the spaces between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import CHAT, Notes, byte_tokenizer, register, tiny_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from colearn.config import Config
from colearn.contract.types import Action
from colearn.errors import ConfigError
from colearn.estimate.run_estimate import estimate
from colearn.rollout.agents import ChatFormat, dialogue_spans
from colearn.training.load_team import load_team


def added_marker(folder: Path) -> str:
    """A model whose tokenizer was given a marker, and whose embeddings were not resized."""
    tokenizer = byte_tokenizer()
    tiny_model(vocab=len(tokenizer)).save_pretrained(folder)
    tokenizer.add_tokens(["<|begin|>"], special_tokens=True)
    tokenizer.chat_template = "<|begin|>" + CHAT
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("work", [load_team, estimate], ids=["run", "dry run"])
def test_a_template_with_a_token_that_the_model_lacks_is_one_line(
    work: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an index error in the first rollout, and on a CUDA device the end of the process."""
    register(monkeypatch, notes=f"{Notes.__module__}:{Notes.__name__}")
    model = {"path": added_marker(tmp_path / "model"), "learning_rate": 1e-2}
    config = Config.model_validate(
        {
            "task": {"name": "notes"},
            "algorithm": {"name": "magrpo"},
            "models": {"*": model},
            "run": {"device": "cpu"},
        }
    )
    told = r"^models\.ada\.path: chats hold the token '<\|begin\|>', id 261, .* for 261 tokens; "
    with pytest.raises(ConfigError, match=told):
        work(config)


def test_spaces_that_were_sampled_stay_in_the_text() -> None:
    words = {word: number for number, word in enumerate(("<end>", "x", ",", "'", "y"))}
    plain = Tokenizer(models.WordLevel(words, unk_token="x"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<end>", clean_up_tokenization_spaces=True
    )
    assert tokenizer.decode([1, 2, 4]) == "x, y"
    assert ChatFormat(tokenizer, chat="plain").decode((1, 2, 3, 4, 0)) == "x , ' y"


LLAMA_2 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% else %} {{ m['content'] }} {{ eos_token }}{% endif %}{% endfor %}"
)


def test_an_end_token_behind_a_space_is_written_once() -> None:
    """The turn after an answer began with the template's space and a second end token."""
    chat = ChatFormat(byte_tokenizer(template=LLAMA_2))
    action = Action("ok", (*chat.spell("ok"), chat.end_id))
    tokens = (*chat.open("hi").tokens, *action.tokens, *chat.continuation("go", action).tokens)
    assert chat.tokenizer.decode(tokens) == "[INST] hi [/INST]ok<|end|>[INST] go [/INST]"
    cut = chat.continuation("go", Action("ok", chat.spell("ok"), finish="length"))
    assert chat.tokenizer.decode(cut.tokens) == " <|end|>[INST] go [/INST]"


def test_a_dialogue_under_such_a_template_is_what_it_renders() -> None:
    chat = ChatFormat(byte_tokenizer(template=LLAMA_2))
    spans = dialogue_spans(chat, (("hi", "ok"),), "go", ended=True)
    written = [(chat.tokenizer.decode(span.tokens), span.answer) for span in spans]
    assert written == [
        ("[INST] hi [/INST]", False),
        (" ok <|end|>", True),
        ("[INST] go [/INST]", False),
    ]
