"""Stand-ins for files that are not on this machine: architectures of published models, and a
tokenizer that counts one token per three characters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

_QWEN3 = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
}
_QWEN25 = {"model_type": "qwen2", "vocab_size": 151936, "max_position_embeddings": 32768}
_LLAMA31 = {"model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 131072}
_GEMMA3 = {
    "model_type": "gemma3_text",
    "vocab_size": 262144,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "sliding_window": 512,
}


def _sizes(
    hidden: int, inner: int, layers: int, heads: int, shared: int | None = None, *, tied: bool
) -> dict[str, Any]:
    """Return size fields of config.json; `shared` is the number of key-value heads."""
    fields = {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "tie_word_embeddings": tied,
    }
    return fields if shared is None else fields | {"num_key_value_heads": shared}


_ARCHITECTURES: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-0.6B": _QWEN3 | _sizes(1024, 3072, 28, 16, tied=True),
    "Qwen/Qwen3-1.7B": _QWEN3 | _sizes(2048, 6144, 28, 16, tied=True),
    "Qwen/Qwen3-4B": _QWEN3 | _sizes(2560, 9728, 36, 32, tied=True),
    "Qwen/Qwen3-4B-Instruct-2507": _QWEN3
    | _sizes(2560, 9728, 36, 32, tied=True)
    | {"max_position_embeddings": 262144},
    "Qwen/Qwen3-8B": _QWEN3 | _sizes(4096, 12288, 36, 32, tied=False),
    "Qwen/Qwen3-14B": _QWEN3 | _sizes(5120, 17408, 40, 40, tied=False),
    "Qwen/Qwen3-32B": _QWEN3 | _sizes(5120, 25600, 64, 64, tied=False),
    "Qwen/Qwen2.5-0.5B": _QWEN25 | _sizes(896, 4864, 24, 14, 2, tied=True),
    "Qwen/Qwen2.5-1.5B": _QWEN25 | _sizes(1536, 8960, 28, 12, 2, tied=True),
    "Qwen/Qwen2.5-3B": _QWEN25 | _sizes(2048, 11008, 36, 16, 2, tied=True),
    "Qwen/Qwen2.5-7B": _QWEN25
    | _sizes(3584, 18944, 28, 28, 4, tied=False)
    | {"vocab_size": 152064},
    "meta-llama/Llama-3.1-8B": _LLAMA31 | _sizes(4096, 14336, 32, 32, 8, tied=False),
    "google/gemma-3-270m": _GEMMA3 | _sizes(640, 2048, 18, 4, 1, tied=True),
    "google/gemma-3-1b": _GEMMA3 | _sizes(1152, 6912, 26, 4, 1, tied=True),
}
_VARIANTS = ("-Instruct", "-Base", "-it", "-pt")


@cache
def published_config(name: str) -> PretrainedConfig | None:
    """Return the config of a published model by its hub name; None for an unknown model.

    Only fields that affect memory and lengths are set; the others keep transformers' defaults.
    """
    from transformers import AutoConfig

    plain = name.replace("Qwen2.5-Coder-", "Qwen2.5-")
    for variant in _VARIANTS:
        plain = plain.removesuffix(variant)
    fields = _ARCHITECTURES.get(name) or _ARCHITECTURES.get(plain)
    if fields is None:
        return None
    config: PretrainedConfig = AutoConfig.for_model(**fields)
    return config


CHARACTERS_PER_TOKEN = 3
"""Number of characters per token. English text has four to five, so lengths are overestimated."""
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The ChatML template, which adds as many characters per turn as most published ones."""


@cache
def stand_in_tokenizer() -> PreTrainedTokenizerBase:
    """Return a tokenizer that is correct only in the number of ids: all ids of a text are equal."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Split(Regex(rf"[\s\S]{{1,{CHARACTERS_PER_TOKEN}}}"), "isolated")
    fast_tokenizer: PreTrainedTokenizerBase = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    fast_tokenizer.chat_template = _TEMPLATE
    return fast_tokenizer
