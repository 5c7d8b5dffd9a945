"""Tokenizers that write a space in front of a text, built as the public ones are: SentencePiece's
BPE with bytes for characters that the vocabulary lacks."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

KINDS = ("prepend", "always", "first", "never", "split", "unigram", "byte_level")
"""Llama 2's and Mistral's first normalizer, the three schemes of `Metaspace`, one that splits
words, a unigram model, and a byte-level vocabulary whose texts begin with a space."""
_WORDS = ("Hello", "world", "USER", "ASSISTANT", "INST", "One", "Two", "blue", "red", "is", "the")
_LETTERS = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:?!<|>/[]{}\"'_"


def prefix_tokenizer(
    kind: str, *, template: str | None = None, special: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """`kind` is one of `KINDS`; `special` are further special tokens."""
    named = ("<unk>", "<s>", "</s>")
    merges = [
        pair
        for word in [*(f"▁{word}" for word in _WORDS), *_WORDS, "▁▁"]
        for pair in ((word[:end], word[end]) for end in range(1, len(word)))
    ]
    merges = list(dict.fromkeys(merges))
    bytes_of_text = [f"<0x{number:02X}>" for number in range(256)]
    letters: Sequence[str] = _LETTERS
    if kind == "byte_level":
        merges = [(a.replace("▁", "Ġ"), b.replace("▁", "Ġ")) for a, b in merges]
        letters, bytes_of_text = sorted(pre_tokenizers.ByteLevel.alphabet()), []
    words = [*named, *special, *bytes_of_text, *letters, *(a + b for a, b in merges)]
    words = list(dict.fromkeys(words))
    if kind == "unigram":
        scores = [(word, -10.0 + len(word) / 2) for word in words]
        tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    else:
        tokenizer = Tokenizer(
            models.BPE(
                vocab={word: number for number, word in enumerate(words)},
                merges=merges,
                unk_token="<unk>",
                fuse_unk=True,
                byte_fallback=kind != "byte_level",
            )
        )
    if kind == "byte_level":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    elif kind == "prepend":
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="▁",
            prepend_scheme="always" if kind in ("split", "unigram") else kind,
            split=kind == "split",
        )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            *([] if kind == "never" else [decoders.Strip(" ", 1, 0)]),
        ]
    )
    if kind == "byte_level":
        tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        additional_special_tokens=list(special),
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )
