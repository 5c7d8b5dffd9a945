"""A team's models taught on dialogues by TRL's SFTTrainer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import SIZES, byte_tokenizer, register, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3MoeConfig, Qwen3MoeForCausalLM

from colearn.config import Config, LoRASettings, ModelSettings, load_config
from colearn.contract.types import Action
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat
from colearn.training.learners.sft import Dialogue, fine_tune, read_dialogues
from colearn.training.learners.sft.dialogues import token_row

pytest.importorskip("trl", reason="needs the sft extra")
ONE_PASS: dict[str, Any] = {"epochs": 1.0, "learning_rate": 2e-5, "batch": 8}
ANSWERS = {"ada": "abc", "ben": "xy"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def config(model: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    register(monkeypatch, notes="tiny:Notes")
    return load_config(
        {
            "task": {"name": "notes", "horizon": 1, "items": 3},
            "algorithm": {"name": "magrpo"},
            "models": {"*": {"path": model}},
            "run": {"device": "cpu"},
        }
    )


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


def test_a_dialogues_system_message_replaces_the_agents_own(model: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    own = token_row(
        Dialogue("ada", (("one", "abc"),), "be long"), ChatFormat(tokenizer, system="be brief")
    )
    assert own == token_row(
        Dialogue("ada", (("one", "abc"),)), ChatFormat(tokenizer, system="be long")
    )


def test_a_row_is_its_agents_system_message_and_turns(tmp_path: Path) -> None:
    said = [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]
    row = {"messages": [{"role": role, "content": text} for role, text in said]}
    data = tmp_path / "dialogues.jsonl"
    data.write_text(json.dumps(row))
    assert read_dialogues(data, ["ada"]) == [Dialogue("ada", (("a", "b"), ("c", "d")), "s")]
    with pytest.raises(ConfigError, match="no agent None"):
        read_dialogues(data, ["ada", "ben"])


def test_a_folder_that_holds_something_is_left_as_it_is(config: Config, tmp_path: Path) -> None:
    data = tmp_path / "dialogues.jsonl"
    turn = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    data.write_text(json.dumps({"agent": "ada", "messages": turn}))
    kept = tmp_path / "taught" / "kept"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(ConfigError, match=r"^--out .*taught: is not empty; name another folder$"):
        fine_tune(config, data, kept.parent, **ONE_PASS)
    assert [one.name for one in kept.parent.iterdir()] == ["kept"]


def test_a_dialogue_longer_than_the_model_reads_is_one_line(config: Config, tmp_path: Path) -> None:
    """The model has 1024 positions; the byte tokenizer writes a token for each letter."""
    turn = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b" * 1100}]
    data = tmp_path / "dialogues.jsonl"
    data.write_text(json.dumps({"agent": "ada", "messages": turn}))
    line = r"^--data: line 1 of .* has 1\d\d\d tokens, and the model of 'ada' reads 1024; .*"
    with pytest.raises(ConfigError, match=line):
        fine_tune(config, data, tmp_path / "taught", **ONE_PASS)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_rows_is_one_line(text: str, tmp_path: Path) -> None:
    data = tmp_path / "dialogues.jsonl"
    data.write_text(text)
    with pytest.raises(ConfigError, match=r"dialogues\.jsonl: holds no rows; add some$"):
        read_dialogues(data, ["ada"])


def test_each_agents_model_answers_as_taught(config: Config, tmp_path: Path) -> None:
    rows = [
        {"agent": agent, "messages": [
            {"role": "user", "content": "hello"}, {"role": "assistant", "content": answer}
        ]}
        for agent, answer in ANSWERS.items()
    ] * 4  # fmt: skip
    data = tmp_path / "dialogues.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    folders = fine_tune(config, data, tmp_path / "taught", epochs=12, learning_rate=2e-2, batch=4)
    assert folders == {agent: tmp_path / "taught" / agent for agent in ANSWERS}
    for agent, folder in folders.items():
        chat = ChatFormat(AutoTokenizer.from_pretrained(folder))
        network = AutoModelForCausalLM.from_pretrained(folder)
        ids = torch.tensor([chat.open("hello").tokens])
        said = network.generate(ids, do_sample=False, max_new_tokens=6, eos_token_id=chat.end_id)
        assert chat.decode(tuple(said[0, ids.shape[1] :].tolist())) == ANSWERS[agent]


def test_the_loss_of_a_padded_batch_is_the_mean_over_the_answers_tokens(
    config: Config, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, from transformers' log-probabilities of each dialogue alone."""
    import trl

    losses: list[float] = []
    computed = trl.SFTTrainer.compute_loss

    def compute_loss(self: Any, *given: Any, **settings: Any) -> Any:
        loss = computed(self, *given, **settings)
        losses.append(float((loss[0] if isinstance(loss, tuple) else loss).detach()))
        return loss

    monkeypatch.setattr(trl.SFTTrainer, "compute_loss", compute_loss)
    rows = [
        {"agent": "ada", "messages": [
            {"role": "user", "content": "hello" * k}, {"role": "assistant", "content": "abc" * k}
        ]}
        for k in (1, 3, 7)
    ]  # fmt: skip
    data = tmp_path / "dialogues.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    fine_tune(config, data, tmp_path / "taught", **ONE_PASS | {"batch": 3})
    chat = ChatFormat(AutoTokenizer.from_pretrained(model))
    network = AutoModelForCausalLM.from_pretrained(model)
    scores: list[float] = []
    for dialogue in read_dialogues(data, ["ada"]):
        row = token_row(dialogue, chat)
        ids = torch.tensor([row["input_ids"]])
        with torch.no_grad():
            logprobs = network(ids).logits[0, :-1].log_softmax(-1)
        told = zip(logprobs, row["input_ids"][1:], row["labels"][1:], strict=True)
        scores += [float(line[token]) for line, token, label in told if label != -100]
    assert len(scores) == 3 * (1 + 3 + 7) + 3  # and each answer's end
    assert losses == [pytest.approx(-sum(scores) / len(scores), abs=1e-4)]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"agent": "bne", "messages": []}, "no agent 'bne'; did you mean 'ben'?"),
        ({"agent": "ben"}, "has no list of messages"),
        (
            {"agent": "ben", "messages": [{"role": "user", "content": "a"}]},
            "are by user; write user and assistant in turn",
        ),
        (
            {
                "agent": "ben",
                "messages": [{"role": "user", "content": "a", "reasoning_content": "b"}],
            },
            "has reasoning_content, which rows do not hold; write it into content",
        ),
        ({"agent": "ben", "messages": []}, "are by nobody; write user and assistant in turn"),
        (
            {"agent": "ben", "messages": [{"role": "tool", "content": "a"}]},
            "has no role of system, user, assistant with a text",
        ),
        (
            {"agent": "ben", "messages": [{"role": "user", "content": None}]},
            "has no role of system, user, assistant with a text",
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


def test_a_tied_models_adapter_on_its_embeddings_is_merged_as_it_was_taught(
    config: Config, tmp_path: Path
) -> None:
    tied = save_model(tmp_path / "tied", tied=True)
    lora = LoRASettings(rank=8, targets=["embed_tokens", "down_proj"])
    model = ModelSettings(path=tied, lora=lora)
    config = config.model_copy(update={"models": {"*": model}})
    data = tmp_path / "dialogues.jsonl"
    turn = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "abc"}]
    data.write_text("\n".join([json.dumps({"agent": "ada", "messages": turn})] * 4))
    folders = fine_tune(config, data, tmp_path / "taught", epochs=12, learning_rate=5e-2, batch=4)
    chat = ChatFormat(AutoTokenizer.from_pretrained(folders["ada"]))
    network = AutoModelForCausalLM.from_pretrained(folders["ada"])
    ids = torch.tensor([chat.open("hello").tokens])
    said = network.generate(ids, do_sample=False, max_new_tokens=6, eos_token_id=chat.end_id)
    assert chat.decode(tuple(said[0, ids.shape[1] :].tolist())) == "abc"


@pytest.mark.parametrize("targets", [["head"], ["lm_head"], "(.*q_proj|lm_head)", "q_proj"])
def test_targets_that_are_not_taught_are_one_line(
    targets: str | list[str], config: Config, model: str, tmp_path: Path
) -> None:
    chosen = ModelSettings(path=model, lora=LoRASettings(targets=targets))
    data = tmp_path / "dialogues.jsonl"
    turn = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "abc"}]
    data.write_text(json.dumps({"agent": "ada", "messages": turn}))
    changed = config.model_copy(update={"models": {"*": chosen}})
    with pytest.raises(ConfigError, match=r"^models\.ada\.lora\.targets: [^\n]+$"):
        fine_tune(changed, data, tmp_path / "taught", **ONE_PASS)


@pytest.mark.parametrize("lora", [None, {"rank": 2, "targets": ["q_proj"]}])
def test_a_taught_model_keeps_its_settings_and_its_reader_of_images(
    lora: dict[str, Any] | None, config: Config, tmp_path: Path
) -> None:
    """The trainer turns the cache off, asks for the routers' logits and aligns special tokens."""
    base = tmp_path / "base"
    experts = Qwen3MoeConfig(
        **SIZES,
        vocab_size=len(byte_tokenizer()),
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
    )
    experts.rope_parameters["rope_theta"] = 1e6
    model = Qwen3MoeForCausalLM(experts)
    model.generation_config.eos_token_id = [1, 2]
    model.save_pretrained(base)
    byte_tokenizer().save_pretrained(base)
    (base / "preprocessor_config.json").write_text('{"size": 28}')
    rows = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}]
    data = tmp_path / "dialogues.jsonl"
    data.write_text(json.dumps({"agent": "ada", "messages": rows}))
    settings = {"path": str(base)} | ({} if lora is None else {"lora": lora})
    given = {**config.model_dump(exclude_unset=True), "models": {"*": settings}}
    config = load_config(given)
    taught = fine_tune(config, data, tmp_path / "out", epochs=1, learning_rate=1e-2, batch=1)["ada"]
    for name in ("config.json", "generation_config.json"):
        before, after = (json.loads((folder / name).read_text()) for folder in (base, taught))
        assert {key: after.get(key) for key in before} == before
    after = json.loads((taught / "config.json").read_text())
    assert (after["rope_theta"], after["num_experts"], after["torch_dtype"]) == (1e6, 4, "float32")
    assert (taught / "preprocessor_config.json").read_text() == '{"size": 28}'
