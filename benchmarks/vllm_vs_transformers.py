"""The vLLM and transformers generators on the same weights and histories, interleaved.

    python benchmarks/vllm_vs_transformers.py --rows 32 --tokens 32 --repeats 3

Prints tokens a second of each (decode of all rows, prefill included), their ratio, the engine's
start, and the largest gap between vLLM's log-probabilities and the trained model's before and after
updates. Needs the vllm extra. The model is a random Qwen3: few rows meet the end token.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from functools import partial

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from colearn.agents import AgentSpec, ChatFormat
from colearn.contract import Sampling, TokenAnswer, TokenHistory, TokenRequest
from colearn.generate.checked_engine import CheckedEngine
from colearn.generate.kinds import VLLM
from colearn.generate.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update

Engine = TransformersEngine | CheckedEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of each history")
    parser.add_argument("--tokens", type=int, default=32, help="tokens of each action")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    base = Base(
        _model(options.width, options.layers).to(options.device), getattr(torch, options.dtype)
    )
    sampling = Sampling(max_tokens=options.tokens)
    voice = AgentSpec(adapter=None, chat=ChatFormat(_tokenizer(), chat="plain"), sampling=sampling)
    parameters = sum(parameter.numel() for parameter in base.causal.parameters())
    print(
        f"Qwen3, {parameters / 1e6:.1f} M parameters, {options.dtype} on {options.device}, "
        f"{torch.get_num_threads()} threads; {options.rows} rows x {options.prompt} prompt tokens, "
        f"{options.turns} turns of {options.tokens} new tokens"
    )
    started = time.perf_counter()
    engine = VLLM(tolerance=float("inf")).build(base, {"a": voice})
    assert isinstance(engine, CheckedEngine)
    engine.follow([partial(weight_update, Network(base, None), 3)])
    print(f"vLLM engine start: {time.perf_counter() - started:.1f} s; gap {engine.gap:.1e} nats")
    first = TransformersEngine(base, {"a": voice})
    generators: dict[str, Engine] = {"vllm": engine, "transformers": first}
    rates: dict[str, list[float]] = {name: [] for name in generators}
    for repeat in range(options.repeats + 1):
        for name, generator in generators.items():
            rate = _rate(generator, options.rows, options.prompt, options.turns, repeat)
            print(f"round {repeat}: {name} {rate:.0f} tok/s", flush=True)
            if repeat:  # the first round warms both up
                rates[name].append(rate)
    for name, measured in rates.items():
        shown = ", ".join(f"{rate:.0f}" for rate in measured)
        print(f"{name}: {statistics.median(measured):.0f} tok/s (median of {shown})")
    ratio = statistics.median(rates["vllm"]) / statistics.median(rates["transformers"])
    print(f"vllm / transformers: {ratio:.2f}")

    optimizer = torch.optim.AdamW(base.parameters(), lr=1e-3)
    ids = torch.randint(0, 256, (4, 64), device=base.device)
    for _ in range(3):
        logits = base.logits(base.hidden(ids)[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    engine.check()
    print(f"gap after 3 updates, before sync: {engine.gap:.1e} nats")
    started = time.perf_counter()
    engine.sync()
    print(f"gap after sync: {engine.gap:.1e} nats; sync {time.perf_counter() - started:.2f} s")
    engine.close()


def _rate(generator: Engine, rows: int, prompt: int, turns: int, repeat: int) -> float:
    """Sampled tokens a second over all turns of new histories."""
    random = torch.Generator().manual_seed(repeat)
    last: Sequence[TokenAnswer | None] = [None] * rows
    count = 0
    started = time.perf_counter()
    for turn in range(turns):
        requests = [
            TokenRequest(
                agent="a",
                history=(TokenHistory() if before is None else before.history).observe(
                    torch.randint(0, 256, (prompt,), generator=random).tolist(), None
                ),
                continues=None if before is None else before.history,
                sampling=generator.roles["a"].sampling,
                seeds=(1000 * turn + row,),
            )
            for row, before in enumerate(last)
        ]
        last = [sampled for (sampled,) in generator.generate(requests)]
        count += sum(len(sampled.action.tokens) for sampled in last if sampled is not None)
    return count / (time.perf_counter() - started)


def _model(width: int, layers: int) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=258,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        num_key_value_heads=max(1, width // 128),
        head_dim=64,
        max_position_embeddings=4096,
        initializer_range=0.1,
        tie_word_embeddings=False,
        eos_token_id=257,
    )
    return Qwen3ForCausalLM(config)


def _tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate((*alphabet, "<pad>", "<end>"))}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")


if __name__ == "__main__":
    main()
