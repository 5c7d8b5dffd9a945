"""Update and decoding on one CPU thread against all of them, by model size.

    python benchmarks/threads.py [--threads 2] [--rounds 5]

The two settings take turns, and the ratio is that of the medians, so that other programs of the
machine slow both. Ratios above 1: more threads are slower.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from colearn.models.base import cache_argument

SIZES = ((32, 2), (64, 2), (128, 4), (192, 4), (256, 6), (384, 8), (512, 8), (768, 12))
"""Width and layers."""
VOCABULARY = 512
ROWS, LENGTH = 16, 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| parameters | update | decoding |\n|---|---|---|")
    for width, layers in SIZES:
        model = _model(width, layers)
        count = sum(weight.numel() for weight in model.parameters())
        ratios = [_ratio(work, options) for work in (_update(model), _decoding(model))]
        print(f"| {count:,} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)


def _model(width: int, layers: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=max(2, width // 64),
            num_key_value_heads=max(2, width // 64),
            max_position_embeddings=2 * LENGTH,
            tie_word_embeddings=True,
        )
    )


def _update(model: LlamaForCausalLM) -> Callable[[], None]:
    ids = torch.randint(VOCABULARY, (ROWS, LENGTH))

    def work() -> None:
        model(input_ids=ids, labels=ids).loss.backward()
        model.zero_grad()

    return work


def _decoding(model: LlamaForCausalLM) -> Callable[[], None]:
    ids = torch.randint(VOCABULARY, (ROWS, LENGTH))
    cache = DynamicCache(config=model.config)
    given: dict[str, Any] = {cache_argument(model): cache, "use_cache": True}
    with torch.no_grad():
        model(input_ids=ids, **given)

    @torch.no_grad()
    def work() -> None:
        for _ in range(8):
            model(input_ids=ids[:, :1], **given)
        cache.crop(-8)

    return work


def _ratio(work: Callable[[], None], options: argparse.Namespace) -> float:
    """Seconds on all threads, divided by those on one."""
    seconds: dict[int, list[float]] = {1: [], options.threads: []}
    for _ in range(options.rounds + 1):
        for threads, times in seconds.items():
            torch.set_num_threads(threads)
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
    one, many = (statistics.median(times[1:]) for times in seconds.values())  # the first warms up
    return many / one


if __name__ == "__main__":
    main()
