"""Architectures that cannot read a packed tree, and those that can."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny import SIZES, Notes, byte_tokenizer, cast, forced, gap, plain_logprobs, play, tiny_model
from transformers import (
    AutoModelForCausalLM,
    BartConfig,
    BloomConfig,
    GPTNeoConfig,
    MptConfig,
    RwkvConfig,
)

from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.load import load_base
from colearn.models.logit_check import check_logits

WORDS = len(byte_tokenizer(merges=True))
HALF = {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 4}
BART = {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 48}
KINDS = {
    "positions from the place in the row": BartConfig(vocab_size=WORDS, **BART),
    "distances from the place in the row": MptConfig(
        vocab_size=WORDS, d_model=32, n_heads=4, n_layers=2
    ),
    "a state in place of attention": RwkvConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32
    ),
    "masks of another shape": BloomConfig(vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4),
}


@pytest.mark.parametrize("head", [True, False], ids=["actor", "critic"])
@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_an_architecture_that_reads_no_tree_is_one_line(config: Any, head: bool, tmp_path) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"^critic\.path: cannot load") as raised:
        load_base(
            str(tmp_path),
            compute="float32",
            trained=True,
            device=torch.device("cpu"),
            field="critic.path",
            head=head,
        )
    assert "\n" not in str(raised.value)


def test_local_attention_of_gpt_neo_is_refused_whatever_its_window() -> None:
    config = GPTNeoConfig(vocab_size=WORDS, hidden_size=32, window_size=256, **HALF)
    with pytest.raises(ConfigError, match=r"layers of kind local have no key/value cache"):
        check_logits(Base(AutoModelForCausalLM.from_config(config).eval()))


@pytest.mark.parametrize("kind", ["qwen3", "llama", "mistral", "gemma3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_known_architectures_pass(kind: str, dtype: torch.dtype) -> None:
    check_logits(Base(tiny_model(kind, dtype=dtype), dtype))


def test_a_window_that_the_architecture_does_not_have_hides_nothing() -> None:
    """A config.json may keep a field of the architecture that a model was converted from."""
    team = cast(kind="llama")
    base = team.bases["ada"]
    base.config.sliding_window = SIZES["head_dim"]
    for tree in play(Notes(ends=True), team):
        recorded = {n.index: n.actions["ada"].logprobs for n in tree.nodes if n.actions}
        assert gap(recorded, forced(team, tree, "ada")) < 1e-4
        assert gap(recorded, plain_logprobs(base.causal, tree, "ada")) < 1e-4
