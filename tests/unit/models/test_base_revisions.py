"""The revision of an adapter's base, from a hub's cache on disk: the logits are those of peft."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from peft import (
    AutoPeftModelForCausalLM,
    AutoPeftModelForSequenceClassification,
    LoraConfig,
    get_peft_model,
)
from tiny import byte_tokenizer, tiny_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForSequenceClassification

from colearn.deploy.export import AgentManifest
from colearn.deploy.serve.agent import ServedAgent
from colearn.errors import ConfigError
from colearn.estimate.architecture import Architectures
from colearn.models.adapter_folder import bottom
from colearn.models.digests import file_digests
from colearn.models.load import check_model
from colearn.models.merging import merged_folder
from colearn.runs.record.checksums import write_checksums
from colearn.tasks.rewards.reward_model import RewardModel

FIELD = "models.ada.path"
NAME = "org/tiny"
IDS = torch.arange(5, 25)[None]
COMMITS = {"main": "a" * 40, "v1": "b" * 40}
"""The commits of a branch and of a tag."""
Hub = Callable[..., None]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Writes one revision of a model into the cache of the hub, as a download leaves it."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))

    def write(revision: str, model: Any, name: str = NAME) -> None:
        repository = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        snapshot = repository / "snapshots" / COMMITS[revision]
        model.save_pretrained(snapshot)
        byte_tokenizer().save_pretrained(snapshot)
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / revision).write_text(COMMITS[revision])

    return write


def drawn(model: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for parameter in model.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def save_adapter(
    folder: Path, revision: Any, model: Any, base: str = NAME, task: str = "CAUSAL_LM"
) -> str:
    adapted = get_peft_model(
        model, LoraConfig(task_type=task, r=4, target_modules=["q_proj", "v_proj"])
    )
    adapted.peft_config["default"].base_model_name_or_path = base
    drawn(adapted).save_pretrained(folder)
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"revision": revision}))
    return str(folder)


def two_versions(hub: Hub) -> None:
    hub("main", tiny_model("llama", seed=0))
    hub("v1", tiny_model("llama", seed=1))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(IDS).logits


@pytest.mark.parametrize("revision", ["v1", COMMITS["v1"], None])
def test_an_adapter_is_merged_into_the_revision_of_its_base(
    hub: Hub, tmp_path: Path, revision: str | None
) -> None:
    two_versions(hub)
    adapter = save_adapter(tmp_path / "adapter", revision, tiny_model("llama"))
    expected = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    check_model(adapter, field=FIELD)
    merged = logits(AutoModelForCausalLM.from_pretrained(merged_folder(adapter, FIELD)))
    torch.testing.assert_close(merged, expected, rtol=0, atol=3e-5)
    _edit(adapter, revision="main" if revision in ("v1", COMMITS["v1"]) else "v1")
    other = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    assert (other - expected).abs().max() > 1


def test_a_revision_that_is_itself_an_adapter_is_merged_in_turn(hub: Hub, tmp_path: Path) -> None:
    hub("main", tiny_model("llama", seed=1))
    first = get_peft_model(
        tiny_model("llama", seed=1), LoraConfig(task_type="CAUSAL_LM", target_modules=["o_proj"])
    )
    first.peft_config["default"].base_model_name_or_path = NAME
    hub("v1", drawn(first), "org/first")
    middle = first.merge_and_unload()
    adapter = save_adapter(tmp_path / "second", None, middle, str(tmp_path / "middle"))
    middle = AutoModelForCausalLM.from_pretrained(merged_folder(str(_snapshot(tmp_path)), FIELD))
    middle.save_pretrained(tmp_path / "middle")
    expected = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    _edit(adapter, base_model_name_or_path="org/first", revision="v1")
    merged = logits(AutoModelForCausalLM.from_pretrained(merged_folder(adapter, FIELD)))
    torch.testing.assert_close(merged, expected, rtol=0, atol=3e-5)


def _snapshot(folder: Path) -> Path:
    return folder / "hub" / "models--org--first" / "snapshots" / COMMITS["v1"]


def _edit(adapter: str, **changes: Any) -> None:
    file = Path(adapter) / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_config_tokenizer_and_digests_are_of_the_revision(hub: Hub, tmp_path: Path) -> None:
    hub("main", tiny_model("llama", vocab=300))
    hub("v1", tiny_model("llama", vocab=400))
    adapter = save_adapter(tmp_path / "adapter", "v1", tiny_model("llama", vocab=400))
    folder = Path(bottom(adapter, FIELD))
    assert folder.name == COMMITS["v1"]
    of_v1, of_base = file_digests(str(folder), FIELD), file_digests(adapter, FIELD)
    assert {f"base/{name}": digest for name, digest in of_v1.items()}.items() <= of_base.items()
    architectures = Architectures.__new__(Architectures)
    assert architectures.config(adapter, FIELD).vocab_size == 400


def test_a_tag_that_was_moved_is_merged_anew(hub: Hub, tmp_path: Path) -> None:
    two_versions(hub)
    adapter = save_adapter(tmp_path / "adapter", "v1", tiny_model("llama"))
    before = merged_folder(adapter, FIELD)
    refs = tmp_path / "hub" / "models--org--tiny" / "refs"
    shutil.copy(refs / "main", refs / "v1")
    after = merged_folder(adapter, FIELD)
    assert before != after
    expected = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    torch.testing.assert_close(
        logits(AutoModelForCausalLM.from_pretrained(after)), expected, rtol=0, atol=3e-5
    )


@pytest.mark.parametrize("revision", ["v2", "c" * 40, "", ["v1"]])
def test_a_revision_that_does_not_exist_is_one_line(
    hub: Hub, tmp_path: Path, revision: Any
) -> None:
    two_versions(hub)
    adapter = save_adapter(tmp_path / "adapter", revision, tiny_model("llama"))
    line = rf"^{FIELD}: the adapter .* revision [^\n]+$"
    for read in (check_model, lambda path, field: merged_folder(path, field)):
        with pytest.raises(ConfigError, match=line):
            read(adapter, field=FIELD)
    assert not list((tmp_path / "cache").glob("merged-*[0-9a-f]"))
    served = _agent(adapter)
    with pytest.raises(ConfigError, match=r"^weights: the adapter .* revision [^\n]+$"):
        ServedAgent(served, device="cpu")


def test_a_local_base_has_no_revisions(hub: Hub, tmp_path: Path) -> None:
    base = tmp_path / "base"
    tiny_model("llama").save_pretrained(base)
    byte_tokenizer().save_pretrained(base)
    adapter = save_adapter(tmp_path / "adapter", "v1", tiny_model("llama"), str(base))
    line = rf"^{FIELD}: the adapter .* revision 'v1' of the folder .*; remove revision from its"
    with pytest.raises(ConfigError, match=line):
        merged_folder(adapter, FIELD)
    _edit(adapter, revision="main")
    expected = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    merged = logits(AutoModelForCausalLM.from_pretrained(merged_folder(adapter, FIELD)))
    torch.testing.assert_close(merged, expected, rtol=0, atol=3e-5)


def _agent(adapter: str) -> Path:
    folder = Path(adapter)
    byte_tokenizer().save_pretrained(folder)
    AgentManifest(
        agent="ada", task="notes", algorithm="magrpo", weights="adapter", base=NAME
    ).write(folder)
    write_checksums(folder)
    return folder


def test_an_agent_is_served_on_the_revision_of_its_base(hub: Hub, tmp_path: Path) -> None:
    two_versions(hub)
    adapter = save_adapter(tmp_path / "adapter", "v1", tiny_model("llama"))
    expected = logits(AutoPeftModelForCausalLM.from_pretrained(adapter))
    folder = _agent(adapter)
    served = ServedAgent(folder, device="cpu")
    with torch.no_grad():
        found = served.base.logits(served.base.hidden(IDS))
    torch.testing.assert_close(found, expected, rtol=0, atol=3e-5)


def classifier(seed: int) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=len(byte_tokenizer()),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_labels=1,
            pad_token_id=0,
            initializer_range=0.5,
        )
        return LlamaForSequenceClassification(config).eval()


def test_a_reward_model_reads_the_revision_of_its_base(hub: Hub, tmp_path: Path) -> None:
    hub("main", classifier(0))
    hub("v1", classifier(1))
    adapter = save_adapter(tmp_path / "adapter", "v1", classifier(1), task="SEQ_CLS")
    model = AutoPeftModelForSequenceClassification.from_pretrained(adapter, num_labels=1)
    byte_tokenizer().save_pretrained(adapter)
    ids = byte_tokenizer()("ab", return_tensors="pt", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        expected = model.eval()(input_ids=ids).logits.item()
    [reward] = RewardModel(path=adapter, device="cpu")(["a"], ["b"])
    assert reward == pytest.approx(expected, abs=1e-5)
    _edit(adapter, revision="v2")
    with pytest.raises(ConfigError, match=r"^task\.reward\.path: the adapter .* revision 'v2'"):
        RewardModel(path=adapter, output=None, device="auto")(["a"], ["b"])


def test_a_reward_models_adapter_on_the_hub_is_refused_if_it_names_a_revision(
    hub: Hub, tmp_path: Path
) -> None:
    hub("v1", classifier(1))
    hub("main", get_peft_model(classifier(1), LoraConfig(task_type="SEQ_CLS")), "org/reward")
    folder = tmp_path / "hub" / "models--org--reward" / "snapshots" / COMMITS["main"]
    _edit(str(folder), base_model_name_or_path=NAME, revision="v1")
    absent = folder.parents[1] / ".no_exist" / COMMITS["main"]
    absent.mkdir(parents=True)
    (absent / "config.json").touch()
    line = r"^task\.reward\.path: the adapter org/reward names a revision of its base; download"
    with pytest.raises(ConfigError, match=line):
        RewardModel(path="org/reward", device="cpu")(["a"], ["b"])
