"""What `gpu.py` measures on one accelerator: each function yields (row, figures) as they are known.

Models have random weights, so no file of a model is needed: 1.7 billion parameters in the shape of
Qwen3-1.7B, two narrow layers where `small`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Rows = Iterator[tuple[str, dict[str, Any]]]


def shape(*sizes: int) -> dict[str, int]:
    """Fields of a Qwen3 config: vocabulary, hidden and inner width, layers, heads, those of keys,
    and the size of a head."""
    names = ("vocab", "hidden", "intermediate", "num_hidden_layers", "num_attention_heads")
    full = [name if name.startswith("num") else f"{name}_size" for name in names]
    return dict(zip([*full, "num_key_value_heads", "head_dim"], sizes, strict=True))


SMALL = shape(258, 64, 128, 2, 4, 2, 16)
LARGE = shape(151_936, 2048, 6144, 28, 16, 8, 128)
MIDDLE = shape(151_936, 1024, 3072, 28, 16, 8, 128)
THREE = shape(151_936, 2048, 11_008, 36, 16, 2, 128)
"""Qwen3-1.7B, Qwen3-0.6B and, with Qwen3's norms, Qwen2.5-Coder-3B."""
SMALL_DEVICE = "cpu"
"""Device of a rehearsal."""
PEAK = 989e12
"""FLOP/s of dense products in bfloat16 by the data sheet of H100 and H200."""


class Skipped(Exception):
    """An item that this machine cannot run; says why."""


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise Skipped(f"{package} is not installed")


def device_of(small: bool) -> Any:
    import torch

    return torch.device(SMALL_DEVICE if small else "cuda")


class Stand:
    """A model on the device, a voice for each of two agents, and the turns that they play."""

    def __init__(self, small: bool, *, adapters: int = 0) -> None:
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        from colearn.config import LoRASettings
        from colearn.contract import Sampling
        from colearn.models.base import Base
        from colearn.rollout.agents import AgentSpec, ChatFormat
        from tests.helpers.tiny import byte_tokenizer

        self.small = small
        self.device = device_of(small)
        self.dtype = torch.float32 if small else torch.bfloat16
        self.prompt, self.action = (24, 8) if small else (512, 256)
        config = Qwen3Config(
            **(SMALL if small else LARGE), tie_word_embeddings=True, max_position_embeddings=4096
        )
        torch.manual_seed(0)
        with self.device:  # on a CPU, drawing weights takes longer than what is measured
            causal = Qwen3ForCausalLM(config)
        if adapters:  # a frozen base is stored in the compute type, as in a run
            causal = causal.to(self.dtype).requires_grad_(False)
        self.base = Base(causal, self.dtype)
        names = [f"adapter-{number}" for number in range(adapters)]
        for name in names:
            self.base.add_adapter(name, LoRASettings(rank=16, alpha=32.0))
        self.base.to(self.device)
        tokenizer = byte_tokenizer(template=None, special=("<pad>", "<end>"))
        chat = ChatFormat(tokenizer, chat="plain")
        speaks = Sampling(max_tokens=self.action)
        self.voices = {
            agent: AgentSpec(adapter=name, chat=chat, sampling=speaks)
            for agent, name in zip("ab", names or [None], strict=False)
        }
        self.voice = self.voices["a"]
        self.weights = sum(p.numel() for n, p in causal.named_parameters() if ".lora_" not in n)
        self.asked = 0

    def generated(self, generator: Any, rows: int, forks: int = 4) -> tuple[list[Any], float]:
        """Trees of one turn with `forks` answers each to prompts that were not asked before, and
        seconds."""
        from colearn.contract import TokenHistory, TokenRequest
        from tests.helpers.one_turn_trees import one_turn_trees, prompts

        first, self.asked = self.asked, self.asked + rows // forks
        asked = prompts([self.prompt] * self.asked)[first:]
        agents = sorted(self.voices)
        requests = [
            TokenRequest(
                agent=agents[number % len(agents)],
                history=TokenHistory().observe(prompt, None),
                sampling=self.voice.sampling,
                seeds=tuple(range(forks)),
            )
            for number, prompt in enumerate(asked)
        ]
        self.wait()
        started = time.perf_counter()
        answers = generator.generate(requests)
        self.wait()
        seconds = time.perf_counter() - started
        return one_turn_trees("a", asked, answers), seconds

    def rate(self, generator: Any, rows: int) -> dict[str, Any]:
        """New tokens per second, prefill included, and milliseconds of a token of every row."""
        rows = 4 * rows // 64 if self.small else rows
        self.generated(generator, rows)
        _, seconds = self.generated(generator, rows)
        return {
            "rows": rows,
            "tokens_per_second": round(rows * self.action / seconds, 1),
            "token_ms": round(1000 * seconds / self.action, 3),
        }

    def rows_of(self, trees: list[Any]) -> list[Any]:
        from tests.helpers.one_turn_trees import rows_with_actions

        return rows_with_actions(trees, "a")

    def played(self) -> list[Any]:
        """16 trees of four answers by this model; one where `small`."""
        from colearn.engines.transformers import TransformersEngine

        engine = TransformersEngine(self.base, {"a": self.voice})
        return self.generated(engine, 4 if self.small else 64)[0]

    def wait(self) -> None:
        import torch

        if not self.small:
            torch.cuda.synchronize()

    def peak(self) -> float:
        """Peak GiB since the last call."""
        import torch

        if self.small:
            return 0.0
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return round(peak / 2**30, 2)

    def updated(self, rows: list[Any], kind: Any = None, budget: int = 16_384) -> float:
        """Best seconds of an update: accumulate and step."""
        from colearn.config import OptimizerSettings
        from colearn.models.network import Network
        from colearn.training.learners.kinds import Local
        from colearn.training.learners.learner import NetworkLearner

        network = Network(self.base, self.voice.adapter)
        optimizer = (kind or Local()).build("actor", network, OptimizerSettings(learning_rate=1e-6))
        learner = NetworkLearner("actor", network, optimizer, token_budget=budget)
        best = float("inf")
        for _ in range(3):
            self.wait()
            started = time.perf_counter()
            learner.accumulate(rows, lambda outputs, _: (-outputs.logprobs.sum(), {}))
            learner.step(0.0)
            self.wait()
            best = min(best, time.perf_counter() - started)
        return round(best, 4)


def parity(small: bool) -> Rows:
    """The largest gap between CPU and device in float32, over three architectures: of
    log-probabilities, and of gradients relative to the largest one."""
    import torch
    import transformers as t

    shape = {**SMALL, "tie_word_embeddings": True, "max_position_embeddings": 4096}
    torch.backends.cuda.matmul.allow_tf32 = False
    gaps = {}
    for kind, config in (
        ("Qwen3", t.Qwen3Config(**shape)),
        ("Llama", t.LlamaConfig(**shape)),
        ("Gemma3", t.Gemma3TextConfig(**shape, sliding_window=16)),
    ):
        made = []
        for device in (torch.device("cpu"), device_of(small)):
            torch.manual_seed(0)
            model = getattr(t, f"{kind}ForCausalLM")(config).to(device)
            ids = (torch.arange(96) * 37 % 250).view(2, 48).to(device)
            logits = model(input_ids=ids[:, :-1]).logits.float()
            logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])
            logprobs.sum().backward()
            gradients = torch.cat([p.grad.flatten().cpu() for p in model.parameters()])
            made.append((logprobs.detach().cpu(), gradients))
        (one, slope), (other, others) = made
        gaps[kind] = [
            float((one - other).abs().max()),
            float((slope - others).abs().max() / slope.abs().max()),
        ]
    yield "parity", {"gaps": gaps}


def speed(small: bool) -> Rows:
    """The two constants of dry runs, kept for the items that compare times with a dry run's."""
    from colearn.estimate.measure import measure
    from colearn.estimate.speed import keep_speed

    if small:
        raise Skipped("a device in name only has no speed")
    measured = measure(device_of(small))
    keep_speed(device_of(small), measured)
    tflops = {kind: round(rate / 1e12, 1) for kind, rate in measured.products.items()}
    yield "colearn measure", {"tflops": tflops, "launch_us": round(1e6 * measured.launch, 2)}


def gpu_tests(small: bool) -> Rows:
    """The tests that need an accelerator."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1]
    yield "gpu tests", {"error" if done.returncode else "last": last}


def decode(small: bool) -> Rows:
    """The generator that decodes with the trained model."""
    from colearn.engines.transformers import TransformersEngine

    for name, adapters, sizes in (("full weights", 0, (64,)), ("two adapters", 2, (64, 256))):
        stand = Stand(small, adapters=adapters)
        generator = TransformersEngine(stand.base, stand.voices)
        for rows in sizes:
            yield f"decode, {name}, {rows} rows", stand.rate(generator, rows)
        del generator, stand


GRAPHS = {
    "mode": 0,
    "cudagraph_mode": "FULL_DECODE_ONLY",
    "cudagraph_capture_sizes": [64, 128, 256],
}
"""vLLM's graphs of whole passes for the sizes that are asked, without compiling first."""


def vllm(
    name: str, adapters: int, *, server: bool = False, compiles: bool = False
) -> Callable[[bool], Rows]:
    """vLLM on the same work, the seconds of a hand-over of weights, and the gap after it."""

    def run(small: bool) -> Rows:
        needs("vllm")
        from functools import partial

        from colearn.engines.kinds import VLLM, VLLMServer
        from colearn.models.network import Network
        from colearn.models.weight_update import weight_update

        stand = Stand(small, adapters=adapters)
        options: dict[str, Any] = {"cache_gib": 0.1 if small else 28.0, "max_length": 1024}
        if not (small or compiles):
            options["options"] = {"compilation_config": GRAPHS}
        started = time.perf_counter()
        generator = (VLLMServer if server else VLLM)(**options).build(stand.base, stand.voices)
        start = round(time.perf_counter() - started, 1)
        networks = [Network(stand.base, voice.adapter) for voice in stand.voices.values()]
        try:
            generator.follow([partial(weight_update, network, 1) for network in networks])
            for rows in (64,) if server or compiles else (64, 128, 256):
                yield f"{name}, {rows} rows", {**stand.rate(generator, rows), "start": start}
            if compiles:
                return
            started = time.perf_counter()
            generator.sync()
            seconds = time.perf_counter() - started
            lora = [stand.base.adapter_parameters(f"adapter-{n}").values() for n in range(adapters)]
            handed = sum(p.numel() for each in lora for p in each) or stand.weights
            figures = {"seconds": round(seconds, 3), "parameters": handed}
            yield f"{name}, hand-over", {**figures, "gap": getattr(generator, "gap", None)}
        finally:
            generator.close()

    return run


def update(small: bool) -> Rows:
    """An update of one adapter as a share of the peak rate. Products with frozen weights take four
    FLOP per parameter and token, and six by the convention of most reports."""
    stand = Stand(small, adapters=1)
    trees = stand.rows_of(stand.played())
    each = sum(len(row.tokens) for row in trees) // len(trees)
    stand.peak()
    for name, tokens, budget in (("16k", 16_384, 16_384), ("65k", 65_536, 32_768)):
        count = 2 if small else tokens // each
        rows = (trees * count)[:count]
        seconds = stand.updated(rows, budget=budget)
        rate = count * each * stand.weights / seconds / PEAK
        yield (
            f"update, {name} tokens",
            {
                "tokens": count * each,
                "seconds": seconds,
                "mfu": round(6 * rate, 4),
                "made": round(4 * rate, 4),
                "peak_gib": stand.peak(),
            },
        )


def zero3(small: bool) -> Rows:
    """Seconds of an update in full weights under ZeRO 3 in one process, and beside it without."""
    needs("deepspeed")
    if small:
        os.environ["DS_ACCELERATOR"] = "cpu"
    from colearn.training.learners.kinds import DeepSpeed

    stand = Stand(small)
    rows = stand.rows_of(stand.played())
    alone = stand.updated(rows)
    stand.peak()
    seconds = stand.updated(rows, DeepSpeed(config="zero3"))
    yield "zero3", {"seconds": seconds, "alone": alone, "peak_gib": stand.peak()}


def from_runs(
    function: str, *packages: str, large: Mapping[str, int] = LARGE, **settings: Any
) -> Callable[[bool], Rows]:
    """A function of `_gpu_runs`, which imports much, with a model of this shape."""

    def run(small: bool) -> Rows:
        for package in packages:
            needs(package)
        import _gpu_runs

        measured = getattr(_gpu_runs, function)
        yield from measured(SMALL if small else large, small, device_of(small), **settings)

    return run
