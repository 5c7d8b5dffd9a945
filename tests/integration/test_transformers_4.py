"""Saved folders, read by the newest transformers 4: the logits and token ids are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import SIZES, byte_tokenizer, model_that_reads_images, tiny_model
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GemmaTokenizer,
    GPTNeoXConfig,
    LlamaConfig,
    LlamaTokenizer,
    Olmo3Config,
    Phi3Config,
    PhiConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

from colearn.models.saved_folder import save_model, save_tokenizer

pytestmark = pytest.mark.network

IDS = torch.arange(5, 69)[None]
TEXTS = ("an and", " and<|user|>", "<s>x</s>")
READ = """
import json, sys, torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
assert transformers.__version__.startswith("4.")
texts = json.loads(sys.argv[1])
for folder in sys.argv[2:]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = [tokenizer(text)["input_ids"] for text in texts]
    try:
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        with torch.no_grad():
            logits = model(torch.arange(5, 69)[None]).logits
    except TypeError as error:
        logits = str(error)
    torch.save((ids, logits), folder + "/by_4.pt")
"""
SHAPE = {**SIZES, "vocab_size": 300, "pad_token_id": 0, "initializer_range": 0.2}
NO_HEAD = {key: value for key, value in SHAPE.items() if key != "head_dim"}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}
LONG = {"type": "longrope", "short_factor": [1.1] * 4, "long_factor": [2.0] * 4}


def by_layer(**sliding: Any) -> dict[str, Any]:
    full = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
    return {
        "sliding_window": 24,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"full_attention": full, "sliding_attention": sliding},
    }


MODELS: dict[str, Any] = {
    "base": Qwen3Config(**SHAPE, rope_theta=1e6),
    "linear": LlamaConfig(**SHAPE, rope_scaling={"rope_type": "linear", "factor": 2.0}),
    "yarn": Qwen3Config(**SHAPE, rope_theta=1e6, rope_scaling=YARN),
    "share": PhiConfig(**NO_HEAD, partial_rotary_factor=0.5, rope_theta=3e4),
    "names": GPTNeoXConfig(
        **{key: value for key, value in NO_HEAD.items() if key != "num_key_value_heads"},
        rotary_pct=0.5,
        rotary_emb_base=25000,
    ),
    "three": Phi3Config(
        **NO_HEAD, rope_theta=5e4, original_max_position_embeddings=64, rope_scaling=LONG
    ),
    "layers": Gemma3TextConfig(**SHAPE, **by_layer(rope_type="default", rope_theta=2e4)),
    "layers of one base": Olmo3Config(**NO_HEAD, **by_layer(rope_type="default", rope_theta=1e6)),
    "experts": Qwen3MoeConfig(**SHAPE, **EXPERTS, rope_theta=1e6),
    "needs 5": Gemma3TextConfig(
        **SHAPE, **by_layer(rope_type="linear", factor=2.0, rope_theta=2e4)
    ),
}


def tokenizers() -> dict[str, Any]:
    """Version 4 has other rules than tokenizer.json for the classes of the last two."""
    letters = ["\u2581", *map(chr, range(97, 123)), "an", "and", "\u2581and"]
    special = ["<unk>", "<s>", "</s>", "<pad>", "<bos>", "<eos>"]
    words = [*special, *(f"<0x{number:02X}>" for number in range(256)), *letters]
    vocabulary = {word: number for number, word in enumerate(words)}
    merges = [("a", "n"), ("an", "d"), ("\u2581", "and")]
    return {
        "bytes": byte_tokenizer(),
        "llama": LlamaTokenizer(vocab=vocabulary, merges=merges, pad_token="<pad>"),
        "gemma": GemmaTokenizer(vocab=vocabulary, merges=merges),
    }


def test_version_4_computes_what_version_5_does(tmp_path: Path) -> None:
    place = tmp_path / "transformers"
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(place)]
    subprocess.run([*install, "transformers>=4.57,<5"], check=True)
    expected, folders = {}, []
    models = {name: AutoModelForCausalLM.from_config(config) for name, config in MODELS.items()}
    models |= {"images": model_that_reads_images()}
    chosen = {name: byte_tokenizer() for name in models} | tokenizers()
    for name, tokenizer in chosen.items():
        folder = tmp_path / name
        save_model(model := models.get(name, tiny_model()), folder)
        save_tokenizer(tokenizer, folder)
        with torch.no_grad():
            logits = model.eval()(IDS).logits
        expected[name] = [tokenizer(text)["input_ids"] for text in TEXTS], logits
        folders.append(str(folder))
    environment = {**os.environ, "PYTHONPATH": str(place)}
    texts = "[" + ", ".join(f'"{text}"' for text in TEXTS) + "]"
    subprocess.run([sys.executable, "-c", READ, texts, *folders], check=True, env=environment)
    for name, (ids, logits) in expected.items():
        read_ids, read = torch.load(tmp_path / name / "by_4.pt")
        assert read_ids == ids, name
        if name == "needs 5":
            assert isinstance(read, str)
        else:
            torch.testing.assert_close(read, logits, rtol=0, atol=1e-5, msg=name)
