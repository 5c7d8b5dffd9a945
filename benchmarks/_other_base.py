"""A base of another family and tokenizer than the embedded models': GPT-2, a token a character."""

from __future__ import annotations

from pathlib import Path
from string import printable
from typing import TYPE_CHECKING, Any

import numpy as np
import stakes

from colearn.contract.types import Observation
from colearn.models.embedded_recipes import Recipe
from colearn.models.embedded_tokenizer import chat_tokenizer
from colearn.models.warm_start import warm_start

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LONGEST = 6
"""Tokens of the longest right answer, with the end."""
SPECIAL = ("<pad>", "<unk>", "<end>", "<user>", "<answer>")
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<answer>{{ m['content'] }}<end>"
    "{% else %}<user>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<answer>{% endif %}"
)


def other_base(task: stakes.Stakes, folder: Path, seed: int) -> Path:
    """A model of width 48 in `folder`, warm-started on legal play; made if it is not there."""
    if folder.exists():
        return folder
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = characters()
    torch.manual_seed(seed)
    model: Any = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=128,
            n_embd=48,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    rng = np.random.default_rng(seed)
    deals = [task.reset(item, rng) for item in range(256)]
    episodes = [
        [
            [(Observation(task.observe(deal, agent)), task.legal_action(deal, agent, rng))]
            for agent in task.agents
        ]
        for deal in deals
    ]
    recipe = Recipe(width=48, layers=2, heads=4, episodes=256, steps=300, draw=(seed,))
    warm_start(model, tokenizer, episodes, recipe)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def characters() -> PreTrainedTokenizerBase:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *sorted(printable)))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return chat_tokenizer(tokenizer, SPECIAL, TEMPLATE)
