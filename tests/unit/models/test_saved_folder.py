"""Saved folders under the names of transformers 4 and 5: by hand, and read again by version 5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from tiny import byte_tokenizer, model_that_reads_images
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Gemma3TextConfig,
    Glm4MoeConfig,
    GPTNeoXConfig,
    LlamaConfig,
    Olmo3Config,
    Phi3Config,
    PhiConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

from colearn.models.saved_folder import (
    NEEDS_5,
    copy_processors,
    read_by_4,
    save_model,
    save_tokenizer,
)

LAYERS = ["sliding_attention", "full_attention"]
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}


def by_layer(full: dict[str, Any], sliding: dict[str, Any]) -> dict[str, Any]:
    parameters = {"full_attention": full, "sliding_attention": sliding}
    return {"num_hidden_layers": 2, "layer_types": LAYERS, "rope_parameters": parameters}


SCALED = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
PLAIN = {"rope_type": "default", "rope_theta": 2e4}
LINEAR = {"rope_type": "linear", "factor": 8.0}
LONG = {"short_factor": [1.1] * 4, "long_factor": [2.0] * 4}
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a base": (Qwen3Config(rope_theta=1e6), {"rope_theta": 1e6}),
    "the usual base": (LlamaConfig(), {"rope_theta": 1e4}),
    "llama3": (
        LlamaConfig(rope_theta=5e5, rope_scaling=dict(LLAMA3)),
        {"rope_theta": 5e5, "rope_scaling": LLAMA3},
    ),
    "yarn": (
        Qwen3Config(rope_theta=1e6, rope_scaling=dict(YARN)),
        {"rope_theta": 1e6, "rope_scaling": YARN},
    ),
    "a share": (
        PhiConfig(rope_theta=3e4, partial_rotary_factor=0.25),
        {"rope_theta": 3e4, "partial_rotary_factor": 0.25},
    ),
    "other names": (
        GPTNeoXConfig(rotary_pct=0.5, rotary_emb_base=25000),
        {"rotary_pct": 0.5, "rotary_emb_base": 25000},
    ),
    "three fields and no other": (
        Phi3Config(**SMALL, rope_theta=5e4, rope_scaling={"type": "longrope", **LONG}),
        {
            "rope_theta": 5e4,
            "partial_rotary_factor": 1.0,
            "rope_scaling": {"type": "longrope", **LONG},
        },
    ),
    "two kinds of layers": (
        Gemma3TextConfig(**by_layer(dict(SCALED), dict(PLAIN))),
        {"rope_theta": 1e6, "rope_local_base_freq": 2e4, "rope_scaling": LINEAR},
    ),
    "two kinds of layers with one base": (
        Olmo3Config(**by_layer(dict(SCALED), {"rope_type": "default", "rope_theta": 1e6})),
        {"rope_theta": 1e6, "rope_scaling": LINEAR},
    ),
    "two bases where version 4 has one": (
        Olmo3Config(**by_layer(dict(SCALED), dict(PLAIN))),
        {"rope_theta": NEEDS_5},
    ),
    "scaled sliding layers": (
        Gemma3TextConfig(**by_layer(dict(SCALED), {**LINEAR, "rope_theta": 2e4})),
        {"rope_theta": NEEDS_5},
    ),
    "experts": (
        Qwen3MoeConfig(rope_theta=1e6, num_experts=4),
        {"rope_theta": 1e6, "num_experts": 4, "num_local_experts": 4},
    ),
}
OLD = (
    *("rope_theta", "rope_scaling", "partial_rotary_factor", "rope_local_base_freq"),
    *("rotary_pct", "rotary_emb_base", "num_experts"),
)


class Unweighted:
    """A model's config without its weights."""

    def __init__(self, config: Any, *weights: str) -> None:
        self.weights = weights
        config.dtype = torch.bfloat16
        self.config = config

    def save_pretrained(self, folder: Path) -> None:
        self.config.save_pretrained(folder)

    def named_parameters(self) -> list[tuple[str, None]]:
        return [(name, None) for name in self.weights]


@pytest.mark.parametrize("name", CASES)
def test_renamed_settings_have_both_names(name: str, tmp_path: Path) -> None:
    config, expected = CASES[name]
    save_model(Unweighted(config), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert {key: written[key] for key in expected} == expected
    assert {key for key in OLD if key in written} <= expected.keys()
    assert (written["dtype"], written["torch_dtype"]) == ("bfloat16", "bfloat16")
    again = AutoConfig.from_pretrained(tmp_path)
    assert again.rope_parameters == config.rope_parameters
    assert again.dtype == torch.bfloat16
    assert read_by_4(tmp_path) == (NEEDS_5 not in expected.values())


def test_a_nested_config_has_both_names(tmp_path: Path) -> None:
    config = model_that_reads_images().config
    config.text_config.rope_parameters["full_attention"]["rope_theta"] = 7e5
    save_model(Unweighted(config), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())["text_config"]
    assert (written["rope_theta"], written["rope_local_base_freq"]) == (7e5, 1e4)
    again = AutoConfig.from_pretrained(tmp_path).text_config
    assert again.rope_parameters == config.text_config.rope_parameters


def test_a_tokenizer_has_a_class_and_names_that_both_versions_read(tmp_path: Path) -> None:
    tokenizer = byte_tokenizer()
    save_tokenizer(tokenizer, tmp_path)
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert written["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert written["additional_special_tokens"] == ["<|user|>", "<|system|>", "<|assistant|>"]
    assert "extra_special_tokens" not in written
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again("a<|user|>b<|end|>")["input_ids"] == tokenizer("a<|user|>b<|end|>")["input_ids"]
    assert again.all_special_tokens == tokenizer.all_special_tokens
    assert again.chat_template == tokenizer.chat_template


def test_the_reader_of_images_is_copied_from_a_folder_and_from_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--org--tiny"
    snapshot, out = repository / "snapshots" / ("a" * 40), tmp_path / "out"
    for folder in (snapshot, repository / "refs", out):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text("a" * 40)
    (snapshot / "preprocessor_config.json").write_text('{"size": 28}')
    for path in (str(snapshot), "org/tiny"):
        copy_processors(path, out)
        (file,) = out.iterdir()
        assert file.name == "preprocessor_config.json" and not file.is_symlink()
        assert file.read_text() == '{"size": 28}'
        file.unlink()


@pytest.mark.parametrize(("weights", "layers"), [((), 0), (("mtp.layers.0.weight",), 1)])
def test_layers_that_are_not_stored_are_not_declared(
    weights: tuple[str, ...], layers: int, tmp_path: Path
) -> None:
    config = Glm4MoeConfig(num_nextn_predict_layers=1)
    save_model(Unweighted(config, *weights), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["num_nextn_predict_layers"] == layers
    assert AutoConfig.from_pretrained(tmp_path).num_nextn_predict_layers == layers
