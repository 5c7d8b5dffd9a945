"""Stand-in for tokenizers that are not on this machine. It counts one token per three
characters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHARACTERS_PER_TOKEN = 3
"""Number of characters per token. English text has four to five, so lengths are overestimated."""
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The ChatML template, which adds as many characters per turn as the templates of most published
models."""


@cache
def stand_in_tokenizer() -> PreTrainedTokenizerBase:
    """Return a tokenizer that is correct only in the number of ids: all ids of a text are equal."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Split(Regex(rf"[\s\S]{{1,{CHARACTERS_PER_TOKEN}}}"), "isolated")
    made: PreTrainedTokenizerBase = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    made.chat_template = _TEMPLATE
    return made
