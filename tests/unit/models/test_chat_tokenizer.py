"""The tokenizer of a model that is made here: what ends an answer, pads, and is unknown text."""

from __future__ import annotations

from tokenizers import Tokenizer, models, pre_tokenizers

from colearn.models.embedded_tokenizer import chat_tokenizer

SPECIAL = ("<pad>", "<unk>", "<end>", "<user>")
TEMPLATE = "{% for m in messages %}<user> {{ m['content'] }}{% endfor %}"


def test_the_first_three_special_tokens_pad_stand_for_unknown_text_and_end_an_answer():
    words = {word: number for number, word in enumerate((*SPECIAL, "red"))}
    plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = chat_tokenizer(plain, SPECIAL, TEMPLATE)
    assert (tokenizer.pad_token, tokenizer.eos_token) == ("<pad>", "<end>")
    assert tokenizer.unk_token == "<unk>"
    assert set(tokenizer.all_special_tokens) == set(SPECIAL)
    written = tokenizer.apply_chat_template([{"role": "user", "content": "red"}], tokenize=False)
    assert tokenizer(written, add_special_tokens=False)["input_ids"] == [3, 4]
