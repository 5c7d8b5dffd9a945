"""Measurements for one accelerator, sorted by worth, a few minutes a call.

    python benchmarks/gpu.py --out gpu.jsonl --minutes 9      # call it again until nothing is left
    python benchmarks/gpu.py --out cpu.jsonl --small          # a rehearsal on the CPU

Every item runs in a process of its own and adds one JSON line; finished items are not repeated, and
an item that fails or lacks a package adds its reason. Models have random weights, so no file of a
model is needed: 1.7 billion parameters in the shape of Qwen3-1.7B, two small layers with --small.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT), str(ROOT / "benchmarks")]

SMALL: dict[str, int] = {
    "vocab_size": 258,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
LARGE: dict[str, int] = {
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
}


MIDDLE = LARGE | {"hidden_size": 1024, "intermediate_size": 3072}
"""In the shape of Qwen3-0.6B."""
SMALL_DEVICE = "cpu"
"""Device of a rehearsal."""


class Skipped(Exception):
    """An item that this machine cannot run; says why."""


class Stand:
    """A model on the device, a voice for it, and episodes that it plays."""

    def __init__(self, small: bool, *, adapters: int = 0) -> None:
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        from colearn.config import LoRASettings
        from colearn.contract import Sampling
        from colearn.models.base import Base
        from colearn.rollout.agents import AgentSpec, ChatFormat
        from tests.helpers.tiny import byte_tokenizer

        self.small = small
        self.device = torch.device(SMALL_DEVICE if small else "cuda")
        self.dtype = torch.float32 if small else torch.bfloat16
        self.prompt, self.action, self.rows = (24, 8, 4) if small else (512, 256, 64)
        config = Qwen3Config(
            **(SMALL if small else LARGE), tie_word_embeddings=True, max_position_embeddings=4096
        )
        torch.manual_seed(0)
        with (
            self.device
        ):  # weights are drawn there: on a CPU that takes longer than what is measured
            causal = Qwen3ForCausalLM(config)
        if adapters:  # a frozen base is stored in the compute type, as in a run
            causal = causal.to(self.dtype).requires_grad_(False)
        self.base = Base(causal, self.dtype)
        names = [f"adapter-{number}" for number in range(adapters)]
        for name in names:
            self.base.add_adapter(name, LoRASettings(rank=16, alpha=32.0))
        self.base.to(self.device)
        self.tokenizer = byte_tokenizer(template=None, special=("<pad>", "<end>"))
        chat = ChatFormat(self.tokenizer, chat="plain")
        speaks = Sampling(max_tokens=self.action)
        self.voices = {
            agent: AgentSpec(adapter=name, chat=chat, sampling=speaks)
            for agent, name in zip("ab", names or [None], strict=False)
        }
        self.voice = self.voices["a"]
        self.weights = sum(p.numel() for n, p in causal.named_parameters() if ".lora_" not in n)

    def generated(self, generator: Any, forks: int = 4) -> tuple[list[Any], float]:
        """Trees of one turn with `forks` answers each, and seconds."""
        from colearn.contract import TokenHistory, TokenRequest
        from tests.helpers.one_turn_trees import one_turn_trees, prompts

        asked = prompts([self.prompt] * (self.rows // forks))
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

    def rows_of(self, trees: list[Any], **packing: Any) -> list[Any]:
        from tests.helpers.one_turn_trees import rows_with_actions

        return rows_with_actions(trees, "a", **packing)

    def wait(self) -> None:
        import torch

        if self.device.type == "cuda" and not self.small:
            torch.cuda.synchronize()

    def updated(self, rows: list[Any], times: int = 3) -> tuple[Any, float]:
        """A learner and the best seconds of an update: accumulate and step."""
        from colearn.config import OptimizerSettings
        from colearn.models.network import Network
        from colearn.training.learners.kinds import Local
        from colearn.training.learners.learner import NetworkLearner

        settings = OptimizerSettings(learning_rate=1e-6)
        network = Network(self.base, self.voice.adapter)
        optimizer = Local().build("actor", network, settings)
        learner = NetworkLearner("actor", network, optimizer, token_budget=16_384)
        best = float("inf")
        for _ in range(times):
            self.wait()
            started = time.perf_counter()
            update(learner, rows)
            self.wait()
            best = min(best, time.perf_counter() - started)
        return learner, best


def update(learner: Any, rows: list[Any]) -> None:
    learner.accumulate(rows, lambda outputs, _: (-outputs.logprobs.sum(), {}))
    learner.step(0.0)


def matrix_rate(stand: Stand) -> float:
    """FLOP per second of the best square product in the compute type."""
    import torch

    best = 0.0
    for size in (128, 256) if stand.small else (4096, 8192):
        left = torch.randn(size, size, device=stand.device, dtype=stand.dtype)
        for _ in range(5):
            stand.wait()
            started = time.perf_counter()
            left @ left
            stand.wait()
            best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return best


def gpu_tests(small: bool) -> dict[str, Any]:
    """The tests that need an accelerator."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1]
    return {"error": last} if done.returncode else {"last": last}


def parity(small: bool) -> dict[str, Any]:
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
        for device in ("cpu", SMALL_DEVICE if small else "cuda"):
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
    return {"gaps": gaps}


def speed(small: bool) -> dict[str, Any]:
    """The two constants of dry runs, kept for the items that compare times with a dry run's."""
    import torch

    from colearn.estimate.measure import measure
    from colearn.estimate.speed import keep_speed

    if small:
        raise Skipped("a device in name only has no speed")
    device = torch.device("cuda")
    measured = measure(device)
    keep_speed(device, measured)
    return measured.model_dump()


def update_share(small: bool) -> dict[str, Any]:
    """An update as a share of the matrix rate."""
    from colearn.engines.transformers import TransformersEngine

    stand = Stand(small)
    trees, _ = stand.generated(TransformersEngine(stand.base, {"a": stand.voice}))
    rows = stand.rows_of(trees)
    tokens = sum(len(row.tokens) for row in rows)
    _, seconds = stand.updated(rows)
    rate = matrix_rate(stand)
    return {
        "tokens": tokens,
        "seconds": round(seconds, 4),
        "matrix_tflops": round(rate / 1e12, 3),
        "share": round(6.0 * tokens * stand.weights / seconds / rate, 4),
    }


def decode(adapters: int, *, cuda_graphs: bool = True) -> Callable[[bool], dict[str, Any]]:
    """New tokens per second of the generator that decodes with the trained model, and milliseconds
    of a token of every row."""

    def run(small: bool) -> dict[str, Any]:
        from colearn.engines.transformers import TransformersEngine

        stand = Stand(small, adapters=adapters)
        generator = TransformersEngine(stand.base, stand.voices, cuda_graphs=cuda_graphs)
        stand.generated(generator)
        _, seconds = stand.generated(generator)
        tokens = stand.rows * stand.action
        return {
            "rows": stand.rows,
            "tokens_per_second": round(tokens / seconds, 1),
            "token_ms": round(1000 * seconds / stand.action, 3),
        }

    return run


def blocks_of_logits(small: bool) -> dict[str, Any]:
    """Seconds of an update with blocks of 2^24 logits, and with blocks by the device's memory."""
    from unittest.mock import PropertyMock, patch

    from colearn.engines.transformers import TransformersEngine
    from colearn.models.base import Base
    from colearn.models.logits import LEAST, logits_at_once

    stand = Stand(small)
    trees, _ = stand.generated(TransformersEngine(stand.base, stand.voices))
    rows = stand.rows_of(trees)
    sizes = (LEAST, logits_at_once(stand.device))
    seconds = []
    for size in sizes:
        with patch.object(Base, "logits_at_once", new_callable=PropertyMock, return_value=size):
            seconds.append(round(stand.updated(rows)[1], 4))
    return {"elements": list(sizes), "seconds": seconds}


def large_tree(small: bool) -> dict[str, Any]:
    """A pass over a tree of four branches by FlexAttention and by a dense mask: the gap of hidden
    states, seconds, and peak bytes."""
    import torch

    from colearn.contract.rows import Piece
    from colearn.models import base as base_module
    from colearn.models.tree_mask import TreeMask

    stand = Stand(small)
    length = 60 if small else 3000
    pieces = [Piece(0, length, -1, 0, 0)]
    for number in range(4):
        pieces.append(Piece((number + 1) * length, (number + 2) * length, 0, length, 0))
    mask = TreeMask((tuple(pieces),), 5 * length)
    ids = (torch.arange(mask.width) * 7 % 250)[None].to(stand.device)
    places = torch.cat([torch.arange(length), (torch.arange(length) + length).repeat(4)])
    made, spent, peaks = [], [], []
    on_device = stand.device.type == "cuda"
    for large in (False, True):
        base_module.too_large = lambda _, large=large: large  # type: ignore[attr-defined]
        for _ in range(2):  # the first pass compiles
            if on_device and not small:
                torch.cuda.reset_peak_memory_stats()
            stand.wait()
            started = time.perf_counter()
            hidden = stand.base.hidden(ids, position_ids=places[None].to(stand.device), mask=mask)
            hidden.float().square().mean().backward()
            stand.wait()
            seconds = time.perf_counter() - started
        made.append(hidden.detach().float().cpu())
        spent.append(round(seconds, 4))
        peaks.append(torch.cuda.max_memory_allocated() if on_device and not small else 0)
    gaps = (made[0] - made[1]).abs()
    return {
        "tokens": mask.width,
        "gap": float(gaps.max()),
        "mean_gap": float(gaps.mean()),
        "largest_state": float(made[0].abs().max()),
        "seconds": spent,
        "peak_bytes": peaks,
    }


def packed_trees(small: bool) -> dict[str, Any]:
    """An update on packed trees against rows of their own for each branch."""
    from colearn.engines.transformers import TransformersEngine

    stand = Stand(small)
    trees, _ = stand.generated(TransformersEngine(stand.base, {"a": stand.voice}))
    packed = stand.rows_of(trees)
    apart = stand.rows_of(trees, budget=1)
    together = stand.updated(packed)[1]  # the learner's state is freed before the next one's
    alone = stand.updated(apart)[1]
    return {
        "rows": [len(packed), len(apart)],
        "seconds": [round(together, 4), round(alone, 4)],
    }


def memory(small: bool) -> dict[str, Any]:
    """Peak bytes of an update against weights, gradients and AdamW."""
    import torch

    from colearn.engines.transformers import TransformersEngine

    stand = Stand(small)
    trees, _ = stand.generated(TransformersEngine(stand.base, {"a": stand.voice}))
    stand.updated(stand.rows_of(trees), times=2)
    measured = stand.device.type == "cuda" and not small
    peak = torch.cuda.max_memory_allocated() if measured else 0
    return {"peak_bytes": peak, "state_bytes": 16 * stand.weights}


def vllm(kind: str, lora: bool) -> Callable[[bool], dict[str, Any]]:
    """Tokens per second, and the seconds and the gap of a weight update."""

    def run(small: bool) -> dict[str, Any]:
        needs("vllm")
        from functools import partial

        from colearn.engines.kinds import VLLM, VLLMServer
        from colearn.models.network import Network
        from colearn.models.weight_update import weight_update

        stand = Stand(small, adapters=int(lora))
        gib = 0.1 if small else 8.0
        cls = VLLM if kind == "vllm" else VLLMServer
        generator = cls(cache_gib=gib, max_length=1024).build(stand.base, {"a": stand.voice})
        try:
            generator.follow([partial(weight_update, Network(stand.base, stand.voice.adapter), 1)])
            stand.generated(generator)
            _, seconds = stand.generated(generator)
            started = time.perf_counter()
            generator.sync()
            synced = time.perf_counter() - started
        finally:
            generator.close()
        tokens = stand.rows * stand.action
        return {
            "tokens_per_second": round(tokens / seconds, 1),
            "sync_seconds": round(synced, 3),
            "gap": generator.gap,  # type: ignore[attr-defined]
        }

    return run


def zero3(config: str) -> Callable[[bool], dict[str, Any]]:
    """Seconds of an update under ZeRO 3 in one process."""

    def run(small: bool) -> dict[str, Any]:
        needs("deepspeed")
        if small:
            os.environ["DS_ACCELERATOR"] = "cpu"
        import torch

        from colearn.config import OptimizerSettings
        from colearn.engines.transformers import TransformersEngine
        from colearn.models.network import Network
        from colearn.training.learners.kinds import DeepSpeed
        from colearn.training.learners.learner import NetworkLearner

        stand = Stand(small)
        trees, _ = stand.generated(TransformersEngine(stand.base, {"a": stand.voice}))
        rows = stand.rows_of(trees)
        network, settings = Network(stand.base), OptimizerSettings(learning_rate=1e-6)
        optimizer = DeepSpeed(config=config).build("actor", network, settings)
        learner = NetworkLearner("actor", network, optimizer, token_budget=16_384)
        best = float("inf")
        for _ in range(3):
            stand.wait()
            started = time.perf_counter()
            update(learner, rows)
            stand.wait()
            best = min(best, time.perf_counter() - started)
        peak = torch.cuda.max_memory_allocated() if stand.device.type == "cuda" else 0
        return {"seconds": round(best, 4), "peak_bytes": peak}

    return run


def whole_iteration(algorithm: str, lora: bool, **run: Any) -> Callable[[bool], dict[str, Any]]:
    """Seconds and peak of a team's iteration beside those that a dry run predicts."""

    def measure(small: bool) -> dict[str, Any]:
        import torch
        from _gpu_runs import team

        for package in run.get("needs", ()):
            needs(package)
        settings = {key: value for key, value in run.items() if key != "needs"}
        device = torch.device(SMALL_DEVICE if small else "cuda")
        return team(SMALL if small else LARGE, device, algorithm, lora, **settings)

    return measure


def grpo(peer: bool, **run: Any) -> Callable[[bool], dict[str, Any]]:
    """Seconds of a GRPO step in full weights, here or by TRL, at equal tokens."""

    def measure(small: bool) -> dict[str, Any]:
        import torch
        from _gpu_runs import own_grpo, trl_grpo

        device = torch.device(SMALL_DEVICE if small else "cuda")
        shape = SMALL if small else MIDDLE
        if not peer:
            return own_grpo(shape, device, **run)
        needs("trl")
        return trl_grpo(shape, device)

    return measure


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise Skipped(f"{package} is not installed")


ITEMS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "parity": parity,
    "speed": speed,
    "gpu tests": gpu_tests,
    "decode": decode(0),
    "decode, one adapter": decode(1),
    "decode, two adapters": decode(2),
    "decode, without graphs": decode(0, cuda_graphs=False),
    "vllm, full": vllm("vllm", False),
    "update": update_share,
    "blocks of logits": blocks_of_logits,
    "large tree": large_tree,
    "packed trees": packed_trees,
    "memory": memory,
    "team, magrpo, adapters": whole_iteration("magrpo", True, generator="transformers"),
    "team, collm_cc, adapters": whole_iteration("collm_cc", True, generator="transformers"),
    "grpo": grpo(peer=False, generator="transformers"),
    "grpo by trl": grpo(peer=True),
    "team, magrpo, adapters, vllm": whole_iteration(
        "magrpo", True, generator="vllm", needs=("vllm",)
    ),
    "vllm, adapters": vllm("vllm", True),
    "vllm server, adapters": vllm("server", True),
    "vllm server, full": vllm("server", False),
    "zero3": zero3("zero3"),
    "zero3 offload": zero3("zero3_offload"),
}
"""By worth: what comes first is known even if time runs out."""


def finished(out: Path) -> set[str]:
    lines = out.read_text().splitlines() if out.exists() else []
    return {line["item"] for line in map(json.loads, lines) if "error" not in line}


def run_item(name: str, small: bool, seconds: float) -> dict[str, Any]:
    """One item in a process of its own, at most `seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--item", name, "--result", str(result)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        }
        started = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, *(["--small"] if small else [])],
                capture_output=True,
                text=True,
                timeout=seconds,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return {"item": name, "error": f"took more than {seconds:.0f} s"}
        taken = round(time.perf_counter() - started, 1)
        if not result.exists():
            return {"item": name, "error": done.stderr.strip()[-2000:], "seconds_in_all": taken}
        return {"item": name, **json.loads(result.read_text()), "seconds_in_all": taken}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--minutes", type=float, default=9.0, help="of this call")
    parser.add_argument("--small", action="store_true", help="small shapes on the CPU")
    parser.add_argument("--items", nargs="+", choices=ITEMS, default=list(ITEMS))
    parser.add_argument("--item", choices=ITEMS, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.item is not None:
        try:
            result = ITEMS[options.item](options.small)
        except Skipped as why:
            result = {"skipped": str(why)}
        options.result.write_text(json.dumps(result))
        return
    end = time.monotonic() + 60 * options.minutes
    done = finished(options.out)
    for name in options.items:
        left = end - time.monotonic()
        if name in done or left < 5:
            continue
        line = json.dumps(run_item(name, options.small, left))
        print(line, flush=True)
        with options.out.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
