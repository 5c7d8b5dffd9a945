"""A team's models taught on dialogues by TRL's SFTTrainer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny import register, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from colearn.agents import ChatFormat
from colearn.config import LoRASettings, ModelSettings, load_config
from colearn.errors import ConfigError
from colearn.sft import Dialogue, fine_tune, read_dialogues
from colearn.sft.dialogues import token_row
from colearn.sft.run import _adapter
from colearn.types import Action

pytest.importorskip("trl", reason="needs the sft extra")
ANSWERS = {"ada": "abc", "ben": "xy"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def test_the_labels_are_the_answers_in_the_history_of_training(model: str) -> None:
    chat = ChatFormat(AutoTokenizer.from_pretrained(model), system="be brief")
    row = token_row(Dialogue("ada", (("one", "abc"), ("two", "de"))), chat)
    opened = chat.open("one").tokens
    first = Action("abc", (*chat.spell("abc"), chat.end_id))
    second = (*chat.spell("de"), chat.end_id)
    after = chat.continuation("two", first).tokens
    assert row["input_ids"] == [*opened, *first.tokens, *after, *second]
    assert row["labels"] == [
        *[-100] * len(opened), *first.tokens, *[-100] * len(after), *second
    ]  # fmt: skip


def test_each_agents_model_answers_as_taught(model: str, tmp_path: Path) -> None:
    rows = [
        {"agent": agent, "messages": [
            {"role": "user", "content": "hello"}, {"role": "assistant", "content": answer}
        ]}
        for agent, answer in ANSWERS.items()
    ] * 4  # fmt: skip
    data = tmp_path / "dialogues.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        config = load_config(
            {
                "task": {"name": "notes", "horizon": 1, "items": 3},
                "algorithm": {"name": "magrpo"},
                "models": {"*": {"path": model}},
                "run": {"device": "cpu"},
            }
        )
        folders = fine_tune(
            config, data, tmp_path / "taught", epochs=40, learning_rate=1e-2, batch=4
        )
    assert folders == {agent: tmp_path / "taught" / agent for agent in ANSWERS}
    for agent, folder in folders.items():
        chat = ChatFormat(AutoTokenizer.from_pretrained(folder))
        network = AutoModelForCausalLM.from_pretrained(folder)
        ids = torch.tensor([chat.open("hello").tokens])
        said = network.generate(ids, do_sample=False, max_new_tokens=6, eos_token_id=chat.end_id)
        assert chat.decode(tuple(said[0, ids.shape[1] :].tolist())) == ANSWERS[agent]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"agent": "bne", "messages": []}, "no agent 'bne'; did you mean 'ben'?"),
        ({"agent": "ben"}, "has no list of messages"),
        (
            {"agent": "ben", "messages": [{"role": "user", "content": "a"}]},
            "are by user; write user and assistant in turn",
        ),
    ],
)
def test_a_row_that_cannot_be_used_names_its_line(
    row: dict[str, object], told: str, tmp_path: Path
) -> None:
    data = tmp_path / "dialogues.jsonl"
    data.write_text("\n" + json.dumps(row))
    with pytest.raises(ConfigError, match="line 2 of") as error:
        read_dialogues(data, ["ada", "ben"])
    assert told in str(error.value)


def test_the_adapter_has_the_targets_of_the_config():
    model = ModelSettings(path="m", lora=LoRASettings(rank=2, alpha=4, targets=["q_proj"]))
    adapter = _adapter(model)
    assert (adapter.r, adapter.lora_alpha, set(adapter.target_modules)) == (2, 4, {"q_proj"})
