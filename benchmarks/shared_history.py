"""Decoding of K forks of a history: the history read once for all of them against copies.

    python benchmarks/shared_history.py      # one JSON line for each case, one thread

Models with random weights, 16 histories, 32 new tokens, processor seconds of the fastest of
`--rounds` on each side. `elements` is what `colearn.generate.forked_slab.WORTHWHILE` bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from itertools import product

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from colearn.agents import AgentSpec, ChatFormat
from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.generate import forked_slab
from colearn.generate.transformers import TransformersEngine
from colearn.models.base import Base

HISTORIES, KEY_HEADS, WORDS = 16, 2, 1024
SIZES = {"small": (64, 2, 16), "large": (512, 4, 64)}
"""Width, layers and head size."""


def model(size: str) -> Base:
    width, layers, head = SIZES[size]
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=KEY_HEADS,
        head_dim=head,
        tie_word_embeddings=True,
    )
    return Base(Qwen3ForCausalLM(config).eval())


def seconds(base: Base, length: int, forks: int, least: int) -> float:
    forked_slab.WORTHWHILE = least
    words = {f"w{number}": number for number in range(WORDS)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")), eos_token="w0"
    )
    chat = ChatFormat(tokenizer, chat="plain")
    chat.end_ids = frozenset()  # all actions have 32 tokens
    voices = {"a": AgentSpec(adapter=None, chat=chat, sampling=Sampling(max_tokens=32))}
    generator = TransformersEngine(base, voices)
    requests = [
        TokenRequest(
            agent="a",
            history=TokenHistory().observe(
                ((number + place) % WORDS for place in range(length)), None
            ),
            sampling=voices["a"].sampling,
            seeds=tuple(range(forks)),
        )
        for number in range(HISTORIES)
    ]
    started = time.process_time()
    generator.generate(requests)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for size, forks, length in product(SIZES, (2, 4), (32, 128, 512)):
        base = model(size)
        pairs = [
            (seconds(base, length, forks, 0), seconds(base, length, forks, 2**62))
            for _ in range(rounds)
        ]
        shared, copied = (min(times) for times in zip(*pairs, strict=True))
        elements = HISTORIES * (forks - 1) * length * KEY_HEADS * SIZES[size][2]
        case = {"model": size, "forks": forks, "length": length, "elements": elements}
        times = {"shared": round(shared, 3), "copied": round(copied, 3)}
        print(json.dumps(case | times | {"ratio": round(copied / shared, 2)}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
