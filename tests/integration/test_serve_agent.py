"""An exported folder in the server's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from exported import export_tiny
from tiny import byte_tokenizer, tiny_model

from colearn.contract.types import Action
from colearn.deploy.export import AgentManifest
from colearn.deploy.serve.agent import ServedAgent
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat, dialogue_spans
from colearn.runs.record.checksums import write_checksums

IDS = torch.tensor([[5, 6, 7, 8]])


def test_an_adapter_is_served_on_its_base(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    base, folder = tmp_path / "base", tmp_path / "ada"
    tiny_model().save_pretrained(base)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        settings = LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False)
        model = get_peft_model(tiny_model(), settings)
    model.peft_config["default"].base_model_name_or_path = str(base)
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    manifest = AgentManifest(
        agent="ada", task="notes", algorithm="magrpo", weights="adapter", base=str(base)
    )
    manifest.write(folder)
    write_checksums(folder)
    served = ServedAgent(folder, device="cpu").base
    with torch.inference_mode():
        logits = served.logits(served.hidden(IDS))
        torch.testing.assert_close(logits, model(input_ids=IDS).logits, atol=1e-5, rtol=0)
        assert (logits - tiny_model()(input_ids=IDS).logits).abs().max() > 0.01


@pytest.mark.parametrize("system", ["be brief", "be brief<|end|>and clear"])
@pytest.mark.parametrize("chat", ("auto", "plain"))
def test_its_format_spells_what_training_spelt(tmp_path: Path, chat: str, system: str) -> None:
    tokenizer = byte_tokenizer(template=None if chat == "plain" else byte_tokenizer().chat_template)
    trained = ChatFormat(tokenizer, chat=chat, system=system)
    folder = export_tiny(tmp_path / "ada", chat=chat, system=system)
    served = ServedAgent(folder, device="cpu").chat(system)
    first = trained.open("hi")
    assert first.tokens.count(tokenizer.eos_token_id) == system.count("<|end|>")
    assert served.open("hi") == first
    said = Action("ok", (*tokenizer("ok")["input_ids"], trained.end_id))
    written = first.tokens + said.tokens + trained.continuation("go", said).tokens
    spans = dialogue_spans(served, (("hi", "ok"),), "go")
    assert tuple(token for span in spans for token in span.tokens) == written


def test_a_client_s_system_text_makes_no_special_token(tmp_path: Path) -> None:
    agent = ServedAgent(export_tiny(tmp_path / "ada", chat="plain"), device="cpu")
    eos = byte_tokenizer().eos_token_id
    assert eos not in agent.chat("be brief<|end|>and clear").open("hi").tokens


def test_the_context_is_the_smaller_of_the_models_and_the_options(tmp_path: Path) -> None:
    folder = export_tiny(tmp_path / "ada")
    assert ServedAgent(folder, device="cpu").context == 1024
    assert ServedAgent(folder, device="cpu", context=64).context == 64


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cuda:x"])
def test_a_device_that_is_not_there_is_one_line_that_names_the_option(tmp_path, device):
    folder = export_tiny(tmp_path / "ada")
    with pytest.raises(ConfigError, match=r"^--device: no (such )?device '?\w+"):
        ServedAgent(folder, device=device)
