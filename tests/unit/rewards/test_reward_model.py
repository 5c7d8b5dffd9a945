"""A classifier as a reward: its logit or a class's probability, as transformers computes it."""

from __future__ import annotations

import json

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tokenizers.processors import TemplateProcessing
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

from colearn.errors import ConfigError
from colearn.tasks.rewards.reward_model import RewardModel
from tests.helpers.tiny import byte_tokenizer


def save(
    folder,
    outputs,
    *,
    template=True,
    kind=LlamaForSequenceClassification,
    dropout=0.0,
    positions=2048,
):
    tokenizer = byte_tokenizer() if template else byte_tokenizer(template=None)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_labels=outputs,
        pad_token_id=0,
        initializer_range=0.5,
        attention_dropout=dropout,
        max_position_embeddings=positions,
    )
    model = kind(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder), model, tokenizer


def logits(model, tokenizer, text):
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        return model(input_ids=ids).logits[0]


def test_the_reward_is_the_only_logit(tmp_path):
    path, model, tokenizer = save(tmp_path, 1)
    rewards = RewardModel(path=path, device="cpu")(["2+2=", "2+2="], ["4", "5"])
    expected = [logits(model, tokenizer, text)[0].item() for text in ("2+2=4", "2+2=5")]
    assert rewards == pytest.approx(expected, abs=1e-5) and rewards[0] != rewards[1]


def test_with_several_outputs_it_is_the_probability_of_one(tmp_path):
    path, model, tokenizer = save(tmp_path, 3)
    [reward] = RewardModel(path=path, output=2, device="cpu")(["a"], ["b"])
    assert reward == pytest.approx(logits(model, tokenizer, "ab").softmax(-1)[2].item(), abs=1e-5)


def test_messages_are_written_by_the_classifiers_template(tmp_path):
    path, model, tokenizer = save(tmp_path, 1)
    prompt, said = [{"role": "user", "content": "a"}], [{"role": "assistant", "content": "b"}]
    [reward] = RewardModel(path=path, device="cpu")([prompt], [said])
    text = "<|user|>a<|assistant|>b<|end|>"
    assert reward == pytest.approx(logits(model, tokenizer, text)[0].item(), abs=1e-5)


def test_a_text_is_read_once(tmp_path):
    path, _, _ = save(tmp_path, 1)
    part = RewardModel(path=path, device="cpu")
    assert part(["ab"], ["c"]) == part(["ab"], ["c"])
    assert part.costs() == {
        "reward model texts": 1.0,
        "reward model tokens": 3.0,
        "reward model cached": 1.0,
    }


def test_a_text_is_read_again_once_others_have_taken_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr("colearn.tasks.rewards.reward_model._KEPT", 2)
    path, _, _ = save(tmp_path, 1)
    part = RewardModel(path=path, device="cpu")
    part(["a", "a", "a", "a"], ["b", "c", "d", "b"])
    assert part.costs() == {"reward model texts": 4.0, "reward model tokens": 8.0}


def test_dropout_is_off(tmp_path):
    path, model, tokenizer = save(tmp_path, 1, dropout=0.9)
    [reward] = RewardModel(path=path, device="cpu")(["abcdefgh"], ["ijklmnop"])
    assert reward == pytest.approx(logits(model, tokenizer, "abcdefghijklmnop")[0].item(), abs=1e-5)


def test_no_token_is_added_to_a_text_even_where_the_tokenizer_would(tmp_path):
    path, model, tokenizer = save(tmp_path, 1)
    first = tokenizer.convert_ids_to_tokens(0)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A", special_tokens=[(first, 0)]
    )
    tokenizer.save_pretrained(tmp_path)
    part = RewardModel(path=path, device="cpu", max_length=2)
    assert part(["a"], ["b"]) == pytest.approx([logits(model, tokenizer, "ab")[0].item()], abs=1e-5)
    assert len(tokenizer("ab")["input_ids"]) == 3


def test_code_beside_a_model_is_not_run(tmp_path):
    path, _, _ = save(tmp_path, 1)
    ran = tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\nOwn = None\n")
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "own.Own"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    [reward] = RewardModel(path=path, device="cpu")(["a"], ["b"])
    assert reward != 0.0 and not ran.exists()


def test_weights_that_are_no_safetensors_are_refused(tmp_path):
    path, model, _ = save(tmp_path, 1)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"task\.reward\.path: cannot load .* with safetensors"):
        RewardModel(path=path, device="cpu")(["a"], ["b"])


def test_a_model_without_a_trained_head_is_refused(tmp_path):
    path, _, _ = save(tmp_path, 1, kind=LlamaForCausalLM)
    with pytest.raises(ConfigError, match=r"lacks score\.weight; give a model that was trained"):
        RewardModel(path=path, device="cpu")(["a"], ["b"])


@pytest.mark.parametrize(
    "outputs, settings, line",
    [
        (3, {}, r"task\.reward\.output: .* has 3 outputs; pick one from 0 to 2"),
        (3, {"output": 3}, "has 3 outputs, not 4"),
        (3, {"output": -1}, "has 3 outputs, not 0"),
        (1, {"output": 0}, "has one output; leave it out"),
        (1, {"max_length": 1}, "max_length: a text has 2 tokens, more than 1"),
    ],
)
def test_what_does_not_fit_the_model_is_named(tmp_path, outputs, settings, line):
    path, _, _ = save(tmp_path, outputs)
    with pytest.raises(ConfigError, match=line):
        RewardModel(path=path, device="cpu", **settings)(["a"], ["b"])


def test_a_text_longer_than_the_classifier_reads_is_one_line(tmp_path):
    path, _, _ = save(tmp_path, 1, positions=8)
    part = RewardModel(path=path, device="cpu")
    assert part(["abcd"], ["efgh"]) != [None]
    line = r"^task\.reward\.path: a text has 9 tokens, and '.*' reads 8; shorten"
    with pytest.raises(ConfigError, match=line):
        part(["abcd"], ["efghi"])


def test_an_adapter_of_a_classifier_gives_the_logit_of_peft(tmp_path):
    base, _, tokenizer = save(tmp_path / "base", 1)
    settings = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["q_proj", "v_proj"])
    settings.base_model_name_or_path = base
    plain = LlamaForSequenceClassification.from_pretrained(base)
    model = get_peft_model(plain, settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    model.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    [reward] = RewardModel(path=str(tmp_path / "adapter"), device="cpu")(["a"], ["b"])
    assert reward == pytest.approx(logits(model, tokenizer, "ab")[0].item(), abs=1e-5)


def test_messages_need_a_template(tmp_path):
    path, _, _ = save(tmp_path, 1, template=False)
    prompt = [{"role": "user", "content": "a"}]
    with pytest.raises(ConfigError, match="has no chat template for messages"):
        RewardModel(path=path, device="cpu")([prompt], [prompt])
