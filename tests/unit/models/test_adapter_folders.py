"""Folders of peft adapters as models: base and adapter are one model, by peft's own values."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import IA3Config, LoHaConfig, LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tiny import byte_tokenizer, register, save_model
from transformers import AutoModelForCausalLM

from colearn.config import load_config, resolve
from colearn.deploy.export import export_run
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.estimate.phases import Passes
from colearn.models.digests import file_digests
from colearn.models.folders import with_folders
from colearn.models.load import check_model
from colearn.models.merging import merged_folder
from colearn.training.loop import Experiment

IDS = torch.arange(5, 25)[None]
FIELD = "models.ada.path"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    register(monkeypatch, notes="tiny:Notes")
    yield


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """By whether embeddings and head are one weight."""
    folder = tmp_path_factory.mktemp("bases")
    return {tied: save_model(folder / f"tied-{tied}", "llama", tied=tied) for tied in (True, False)}


@cache
def loaded(folder: str) -> Any:
    """A base of this module, which no test changes."""
    return AutoModelForCausalLM.from_pretrained(folder)


@cache
def answers_of_base(folder: str) -> torch.Tensor:
    with torch.no_grad():
        return loaded(folder)(IDS).logits


def save_adapter(folder: Path, base: str, config: Any) -> str:
    """An adapter that changes the model: its weights are drawn anew."""
    config.base_model_name_or_path = base
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = get_peft_model(copy.deepcopy(loaded(base)), config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(folder)
    return str(folder)


def lora(**settings: Any) -> LoraConfig:
    return LoraConfig(
        **{"task_type": "CAUSAL_LM", "r": 4, "target_modules": "all-linear"} | settings
    )


def answers(folder: str) -> torch.Tensor:
    with torch.no_grad():
        return AutoModelForCausalLM.from_pretrained(folder)(IDS).logits


def by_peft(base: str, adapter: str) -> torch.Tensor:
    plain = copy.deepcopy(loaded(base))
    with torch.no_grad():
        return PeftModel.from_pretrained(plain, adapter).eval()(IDS).logits


KINDS: dict[str, Any] = {
    "all linear layers": lora(),
    "a pattern": lora(target_modules=r".*\.layers\.0\.[a-z_]+\.(q_proj|up_proj)"),
    "rank-stabilised": lora(use_rslora=True),
    "DoRA": lora(use_dora=True),
    "begun by the base's largest parts": lora(init_lora_weights="pissa"),
    "begun by the base's orthonormal parts": lora(init_lora_weights="olora"),
    "ranks and alphas by layer": lora(rank_pattern={"q_proj": 2}, alpha_pattern={"v_proj": 3}),
    "one layer": lora(target_modules=["q_proj"], layers_to_transform=[1], layers_pattern="layers"),
    "embeddings and head": lora(target_modules=["embed_tokens", "lm_head", "q_proj"]),
    "head": lora(target_modules=["lm_head"]),
    "whole embeddings and head": lora(modules_to_save=["embed_tokens", "lm_head"]),
    "whole embeddings and head as one": lora(
        modules_to_save=["embed_tokens", "lm_head"], ensure_weight_tying=True
    ),
    "whole head": lora(modules_to_save=["lm_head"]),
    "new words": lora(trainable_token_indices={"embed_tokens": [5, 7, 9]}),
    "IA3": IA3Config(
        task_type="CAUSAL_LM",
        target_modules=["k_proj", "down_proj"],
        feedforward_modules=["down_proj"],
    ),
    "LoHa": LoHaConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"], r=4),
}


TIED = ("head", "whole embeddings and head", "whole embeddings and head as one", "new words")
"""Kinds that are tried on a base whose head is its embeddings: the others leave these as they are,
or change both alike."""


@pytest.mark.parametrize(
    ("kind", "tied"),
    [*((kind, False) for kind in KINDS), *((kind, True) for kind in TIED)],
)
def test_base_and_adapter_are_one_model(
    kind: str, tied: bool, bases: dict[bool, str], tmp_path: Path
) -> None:
    adapter = save_adapter(tmp_path / "adapter", bases[tied], KINDS[kind])
    expected = by_peft(bases[tied], adapter)
    assert not torch.allclose(expected, answers_of_base(bases[tied]), atol=0.1)
    merged = merged_folder(adapter, FIELD)
    torch.testing.assert_close(answers(merged), expected, rtol=1e-5, atol=3e-5)
    assert merged_folder(adapter, FIELD) == merged
    check_model(adapter, field=FIELD)


def test_an_adapter_on_an_adapter_is_merged_in_turn(bases: dict[bool, str], tmp_path: Path) -> None:
    first = save_adapter(tmp_path / "first", bases[False], lora())
    middle = tmp_path / "middle"
    plain = AutoModelForCausalLM.from_pretrained(bases[False])
    PeftModel.from_pretrained(plain, first).merge_and_unload().save_pretrained(middle)
    second = save_adapter(tmp_path / "second", str(middle), lora(r=2))
    expected = by_peft(str(middle), second)
    config = json.loads((tmp_path / "second" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = first
    (tmp_path / "second" / "adapter_config.json").write_text(json.dumps(config))
    torch.testing.assert_close(answers(merged_folder(second, FIELD)), expected, rtol=0, atol=3e-5)


def test_a_moved_base_and_adapter_are_the_same_model(
    bases: dict[bool, str], tmp_path: Path
) -> None:
    adapter = save_adapter(tmp_path / "adapter", bases[False], lora())
    shutil.copytree(bases[False], tmp_path / "moved")
    shutil.copytree(adapter, tmp_path / "moved-adapter")
    file = tmp_path / "moved-adapter" / "adapter_config.json"
    config = json.loads(file.read_text()) | {"base_model_name_or_path": str(tmp_path / "moved")}
    file.write_text(json.dumps(config))
    moved = str(tmp_path / "moved-adapter")
    assert file_digests(moved, FIELD) == file_digests(adapter, FIELD)
    assert merged_folder(moved, FIELD) == merged_folder(adapter, FIELD)


def settings(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "collm_cc", "loss": {"kl": 0.1}},
        "models": {"*": {"path": model, "learning_rate": 1e-3, "lora": {"rank": 2}}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": model, "lora": {"rank": 2}},
        "train": {"environment_steps": 4, "episodes": 2},
        "run": {"device": "cpu"},
    } | changes


def test_a_run_starts_from_base_and_adapter_and_exports_what_it_trained(
    bases: dict[bool, str], tmp_path: Path
) -> None:
    adapter = save_adapter(tmp_path / "adapter", bases[True], lora(target_modules=["lm_head"]))
    config = settings(adapter)
    expected = by_peft(bases[True], adapter)
    run = Experiment(load_config(config), tmp_path / "run")
    for key, network in run.team.networks.items():
        base = network.base
        with torch.no_grad(), base.using(None):
            if key.kind == "actor":
                torch.testing.assert_close(
                    base.logits(base.hidden(IDS)), expected, rtol=0, atol=3e-5
                )
    run.run()
    folders = export_run(tmp_path / "run", tmp_path / "merged")
    for key, network in run.team.networks.items():
        if key.kind == "actor":
            with torch.no_grad(), network.base.using(network.adapter):
                trained = network.base.logits(network.base.hidden(IDS))
            exported = answers(str(folders[key.model]))
            torch.testing.assert_close(exported, trained, rtol=0, atol=3e-5)
            own = export_run(tmp_path / "run", tmp_path / f"own-{key.model}", adapter=True)
            named = json.loads((own[key.model] / "adapter_config.json").read_text())
            alone = by_peft(named["base_model_name_or_path"], str(own[key.model]))
            torch.testing.assert_close(alone, trained, rtol=0, atol=3e-5)


def test_a_critics_path_and_a_dry_run_read_base_and_adapter(
    bases: dict[bool, str], tmp_path: Path
) -> None:
    adapter = save_adapter(tmp_path / "adapter", bases[False], lora())
    run = with_folders(resolve(load_config(settings(bases[False], critic={"path": adapter}))))
    assert run.config.critic.path == merged_folder(adapter, FIELD)
    passes = Passes()
    estimate(load_config(settings(adapter)), rehearsed=passes)
    shutil.rmtree(tmp_path / "cache")
    estimate(load_config(settings(adapter)), rehearsed=passes)
    assert not (tmp_path / "cache").exists(), "a dry run merges nothing"


def odd(name: str, folder: Path, base: str) -> str:
    """A folder whose adapter cannot be merged."""
    adapter = folder / "adapter"
    save_adapter(adapter, base, lora(target_modules=["q_proj"], lora_bias=name == "own biases"))
    file, weights = adapter / "adapter_config.json", adapter / "adapter_model.safetensors"
    config = json.loads(file.read_text())
    match name:
        case "prompts":
            config["peft_type"] = "PROMPT_TUNING"
        case "classifier":
            config["task_type"] = "SEQ_CLS"
        case "no base":
            config["base_model_name_or_path"] = None
        case "lost base":
            config["base_model_name_or_path"] = str(folder / "gone")
        case "itself":
            config["base_model_name_or_path"] = str(adapter)
        case "begun by random numbers":
            config["init_lora_weights"] = "pissa_niter_4"
        case "begun by a gradient":
            config["init_lora_weights"] = "lora_ga"
        case "unknown kind":
            config["peft_type"] = "NOTHING"
        case "pickled":
            torch.save(load_file(weights), adapter / "adapter_model.bin")
            weights.unlink()
        case "half":
            kept = dict(list(load_file(weights).items())[1:])
            save_file(kept, weights, {"format": "pt"})
        case "other shapes":
            config["r"] = 8
        case "more":
            more = load_file(weights) | {
                "base_model.model.model.extra.lora_A.weight": torch.ones(4, 4)
            }
            save_file(more, weights, {"format": "pt"})
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-9])
        case "quantised":
            other = folder / "quantised"
            shutil.copytree(base, other)
            plain = json.loads((other / "config.json").read_text())
            plain["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True}
            (other / "config.json").write_text(json.dumps(plain))
            config["base_model_name_or_path"] = str(other)
    file.write_text("{" if name == "damaged" else json.dumps(config))
    return str(adapter)


ODD = (
    *("own biases", "prompts", "classifier", "no base", "lost base", "itself", "unknown kind"),
    *("begun by random numbers", "begun by a gradient"),
    *("pickled", "half", "other shapes", "more", "cut", "quantised", "damaged"),
)


@pytest.mark.parametrize("name", ODD)
def test_what_cannot_be_merged_is_one_line(
    name: str, bases: dict[bool, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"^{FIELD}: [^\n]+$") as told:
        merged_folder(odd(name, tmp_path, bases[False]), FIELD)
    assert "adapter" in str(told.value)
    left = tmp_path.glob("cache/merged-*")
    assert [path for path in left if path.suffix not in (".lock", ".partial")] == []


def test_a_tokenizer_of_the_adapters_folder_is_the_models(
    bases: dict[bool, str], tmp_path: Path
) -> None:
    from colearn.models.load import load_tokenizer

    adapter = save_adapter(tmp_path / "adapter", bases[False], lora())
    byte_tokenizer(template="{{ messages }}").save_pretrained(adapter)
    tokenizer = load_tokenizer(merged_folder(adapter, FIELD), field=FIELD)
    assert tokenizer.chat_template == "{{ messages }}"
