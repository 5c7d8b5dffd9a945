"""Measurements of `accelerator_findings.py` on a device in name only, for two versions of colearn.

    python benchmarks/_findings_device.py LIBRARY CASE      # of tests.rehearsal.guard_library

PYTHONPATH begins with the version to measure; `tests.rehearsal` comes from this checkout. Names of
the earlier version are tried where those of the present one are missing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.rehearsal import guard_library

DEVICE = "cuda:1"
LAYERS = 28
"""Layers of Qwen3-1.7B."""
WORDS = 4096
WIDTH = 64
SHAPE: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 32768,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
FEW, MORE = 3, 6
"""New tokens of two runs, whose difference is the cost of a token."""
QWEN_WORDS = 151_936
"""Vocabulary of Qwen3."""
ANSWERED = 512
"""Number of action tokens that are scored."""
TREES = {"2,121": (500, [420, 380, 420, 401]), "16,384": (512, [256] * 62)}
"""Lengths of a history and of its branches."""


def model(kind: str = "qwen3", layers: int = 2, words: int = WORDS, dtype: Any = None) -> Any:
    import transformers

    configs = {"qwen3": "Qwen3Config", "llama": "LlamaConfig", "gemma3": "Gemma3TextConfig"}
    models = {"qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
    settings = SHAPE | {"vocab_size": words, "num_hidden_layers": layers}
    config = getattr(transformers, configs[kind])(**settings, tie_word_embeddings=True)
    torch.manual_seed(0)
    made = getattr(transformers, models.get(kind, "Gemma3ForCausalLM"))(config)
    return made.to(dtype or torch.float32).eval()


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {f"word{number}": number for number in range(WORDS - 1)} | {"<end>": WORDS - 1}
    plain = Tokenizer(models.WordLevel(words, "word0"))
    return PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="word0", eos_token="<end>")


def speaker(adapter: str | None, tokens: int) -> Any:
    from colearn.contract import Sampling

    agents: Any = import_module("colearn.agents")
    kind = getattr(agents, "AgentSpec", None) or agents.Voice
    chat = agents.ChatFormat(tokenizer(), chat="plain")
    return kind(adapter=adapter, chat=chat, sampling=Sampling(max_tokens=tokens))


def engine(base: Any, speakers: dict[str, Any]) -> Any:
    transformers: Any = import_module("colearn.generate.transformers")
    if hasattr(transformers, "TransformersGenerator"):
        return transformers.TransformersGenerator(base, speakers)
    return transformers.TransformersEngine(base, speakers, cuda_graphs=False)


def answers(made: Any, speakers: dict[str, Any], prompts: int, forks: int) -> list[Any]:
    """The prompt and the action of each row."""
    contract: Any = import_module("colearn.contract")
    asked = []
    for agent, spec in speakers.items():
        for number in range(prompts):
            prompt = tuple((place * 31 + number * 7) % 250 for place in range(24))
            given: dict[str, Any] = {"agent": agent, "seeds": tuple(range(forks))}
            if hasattr(contract, "Request"):
                one = contract.Request(session=None, tokens=prompt, **given)
            else:
                history = contract.TokenHistory().observe(prompt, None)
                one = contract.TokenRequest(history=history, sampling=spec.sampling, **given)
            asked.append((prompt, one))
    drawn = made.generate([one for _, one in asked])
    return [
        (prompt, row.action) for (prompt, _), rows in zip(asked, drawn, strict=True) for row in rows
    ]


def moved_after() -> dict[str, str]:
    """Decode with an engine that was built before its base moved, as `tests/gpu` does."""
    from colearn.models.base import Base

    results = {}
    for kind in ("qwen3", "llama", "gemma3"):
        base, spec = Base(model(kind)), speaker(None, 8)
        made = engine(base, {"ada": spec})
        base.to(DEVICE)
        try:
            rows = answers(made, {"ada": spec}, 2, 3)
        except RuntimeError as error:
            results[kind] = f"fails: {str(error).partition(', at')[0]}"
            continue
        gaps = []
        for prompt, action in rows:
            ids = torch.tensor([[*prompt, *action.tokens]], device=DEVICE)
            with torch.no_grad():
                logits = base.causal(input_ids=ids).logits[0].log_softmax(-1).cpu()
            first = len(prompt) - 1
            own = [logits[first + n, token].item() for n, token in enumerate(action.tokens)]
            gaps += [abs(a - b) for a, b in zip(own, action.logprobs, strict=True)]
        results[kind] = f"gap {max(gaps):.1e}"
    return results


def decoded(adapters: int) -> dict[str, Any]:
    """Costs of one token of 16 rows in bfloat16, and the types of the cached tensors."""
    from colearn.config import LoRASettings
    from colearn.models.base import Base

    slab = slab_class()
    update, cached = slab.update, set()

    def noting(self: Any, *given: Any, **named: Any) -> Any:
        result = update(self, *given, **named)
        cached.update(str(one.dtype).removeprefix("torch.") for one in result)
        return result

    slab.update = noting
    spent = []
    for tokens in FEW, MORE:
        half = torch.bfloat16
        base = Base(model(layers=LAYERS, dtype=half if adapters else None), half)
        names = [f"adapter-{number}" for number in range(adapters)]
        for name in names:
            base.causal.requires_grad_(False)
            base.add_adapter(name, LoRASettings(rank=16, alpha=32.0))
        base.to(DEVICE)
        both = [names[number % adapters] if adapters else None for number in range(2)]
        speakers = {a: speaker(n, tokens) for a, n in zip(("ada", "ben"), both, strict=True)}
        made = engine(base, speakers)
        with costs.counted() as counts:
            rows = answers(made, speakers, 2, 4)
        assert {len(action.tokens) for _, action in rows} == {tokens}
        spent.append(counts)
    more = spent[1].minus(spent[0])
    each = {
        kind: sum(more[kind].values()) / (MORE - FEW) for kind in ("kernels", "copies", "waits")
    }
    casts = sum(more["weight_casts"].values()) / (MORE - FEW)
    return {**each, "weight elements cast": casts, "cache": sorted(cached)}


def slab_class() -> Any:
    try:
        return import_module("colearn.generate.batch_slab").Slab
    except ImportError:
        return import_module("colearn.generate.kv_cache").Slab


def head_blocks() -> dict[str, Any]:
    """How often the head is read to score action tokens, and the weights that are cast for it."""
    from colearn.models.base import Base
    from colearn.models.network import Network

    base = Base(model(words=QWEN_WORDS), torch.bfloat16)
    base.to(DEVICE)
    calls = []
    base.causal.get_output_embeddings().register_forward_hook(lambda *_: calls.append(1))
    states = torch.zeros((ANSWERED, WIDTH), device=DEVICE)
    ids = torch.zeros(ANSWERED, dtype=torch.long, device=DEVICE)
    with costs.counted() as counts, torch.no_grad():
        Network(base)._logprobs(states, ids, None, False, False)
    head = QWEN_WORDS * WIDTH
    return {"reads": len(calls), "casts": sum(counts.weight_casts.values()) / head}


def tree_masks() -> dict[str, Any]:
    """The mask of a packed tree: processor seconds to build it and its bytes on a device."""
    from colearn.contract.rows import Piece
    from colearn.models.tree_mask import TreeMask

    results: dict[str, Any] = {}
    for name, (history, branches) in TREES.items():
        pieces = [Piece(0, history, -1, 0, 0)]
        for length in branches:
            start = pieces[-1].end
            pieces.append(Piece(start, start + length, 0, history, 0))
        mask = TreeMask((tuple(pieces),), pieces[-1].end)
        began = time.process_time()
        with costs.counted() as counts:
            built = on_device(mask)
        spent = time.process_time() - began
        largest = max(counts.squares.values(), default=0)
        results[name] = {"seconds": spent, "largest": largest, "kind": built}
    return results


def on_device(mask: Any) -> str:
    device = torch.device(DEVICE)
    try:
        from colearn.models.flex import FlexMask, too_large
    except ImportError:
        mask.dense(device)
        return "dense"
    if not too_large(mask):
        mask.dense(device)
        return "dense"
    FlexMask.of(mask, device)
    return "blocks"


def vllm_arguments() -> dict[str, Any]:
    """Arguments of an engine in this process, whose device is half full, and vLLM's own answer:
    its start needs `gpu_memory_utilization` of the device (0.92 by default) to be free."""
    from colearn.generate.vllm import VLLMEngine
    from colearn.models.base import Base

    given: dict[str, Any] = {}

    class Started(Exception):
        """The engine's arguments are known."""

    class LLM:
        def __init__(self, **named: Any) -> None:
            given.update(named)
            raise Started

    names = ("vllm", "vllm.v1", "vllm.v1.executor", "vllm.v1.executor.uniproc_executor")
    for name in names:  # vLLM itself is not needed: nothing starts
        package: Any = ModuleType(name)
        package.__spec__, package.LLM, package.UniProcExecutor = sys.__spec__, LLM, object
        sys.modules[name] = package
    base = Base(model(), torch.bfloat16)
    base.to(DEVICE)
    nominal_device.FREE[1] = nominal_device.MEMORY // 2
    try:
        VLLMEngine(base, {"ada": speaker(None, 8)})
    except Started:
        share = given.get("gpu_memory_utilization", 0.92)
        asked, free = share * nominal_device.MEMORY, nominal_device.FREE[1]
        named = ("gpu_memory_utilization", "kv_cache_memory_bytes", "enable_sleep_mode")
        arguments = {name: given[name] for name in named if name in given}
        starts = "starts" if asked <= free else "refused"
        return {
            "given": arguments,
            "asked GiB": asked / 2**30,
            "free GiB": free / 2**30,
            "vLLM": starts,
        }
    raise AssertionError("no engine was built")


CASES: dict[str, Callable[[], Any]] = {
    "moved": moved_after,
    "decoded": lambda: {str(adapters): decoded(adapters) for adapters in (0, 1, 2)},
    "head": head_blocks,
    "masks": tree_masks,
    "vllm": vllm_arguments,
}


def main(arguments: Sequence[str]) -> None:
    print("\n" + json.dumps(CASES[arguments[0]]()))


if __name__ == "__main__":
    guard_library.load(Path(sys.argv[1]))
    import torch

    torch.set_num_threads(1)
    import peft  # noqa: F401 - before the device is there, as in the rehearsal

    from tests.rehearsal import costs, nominal_device

    nominal_device.install()
    main(sys.argv[2:])
