"""Tokenizer of an embedded model: one token for each word of its task."""

from __future__ import annotations

from collections.abc import Sequence
from string import printable
from typing import TYPE_CHECKING, Any

from colearn.contract import DecPOMDP
from colearn.methods.critic.stream import piece_tag

from .warm_start import Episode

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<answer>{{ m['content'] }}<end>"
    "{% else %}<{{ m['role'] }}>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<answer>{% endif %}"
)
_SPECIAL = ("<pad>", "<unk>", "<end>", "<user>", "<system>", "<answer>")


def stream_turns(task: DecPOMDP[Any, Any]) -> range:
    """Turn numbers that may occur in a critic's input."""
    return range(max(10, task.horizon))


def embedded_tokenizer(
    task: DecPOMDP[Any, Any], episodes: Sequence[Episode], information: Sequence[str]
) -> PreTrainedTokenizerBase:
    """Build a tokenizer with one token for each word, including its leading space. Each heading in
    a critic's input is also one token. Unknown words are split into the longest known pieces, down
    to characters."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    split = pre_tokenizers.Split(
        Regex(
            r"\n\[[A-Za-z0-9_]+ [0-9]+\]\n"
            r"| ?[A-Za-z_/][A-Za-z0-9_/]*(?:-[A-Za-z0-9_/]+)*| ?[0-9]| ?[^\sA-Za-z0-9_/]|\s"
        ),
        "isolated",
    )
    played = [turn for episode in episodes for turns in episode for turn in turns]
    texts = {text for prompt, action in played for text in (prompt.whole, action)}
    texts |= {*information}
    roles = (*task.agents, "all", "global")
    texts |= {piece_tag(role, n) for role in roles for n in stream_turns(task)}
    words = {piece for text in texts for piece, _ in split.pre_tokenize_str(text)}
    words |= {piece.strip(" ") for piece in words if piece.strip(" ")}
    words |= {f"{space}{digit}" for space in ("", " ") for digit in range(10)}
    words |= {f" {word}" for word in words if not word.startswith((" ", "\n"))}
    words |= {character for word in words for character in word} | set(printable)
    vocabulary = {word: number for number, word in enumerate((*_SPECIAL, *sorted(words)))}
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix="")
    )
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Fuse()
    return chat_tokenizer(tokenizer, _SPECIAL, _TEMPLATE)


def chat_tokenizer(
    tokenizer: Tokenizer, special: Sequence[str], template: str
) -> PreTrainedTokenizerBase:
    """Return transformers' form of a tokenizer. The first three of its `special` tokens pad, stand
    for unknown text, and end an answer; the others mark roles in the chat `template`."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special[0],
        unk_token=special[1],
        eos_token=special[2],
        additional_special_tokens=list(special[3:]),
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )
