"""A damaged model folder or an endless chat template gives one line that names the setting."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import save_model
from transformers import AutoTokenizer

from colearn.errors import ConfigError
from colearn.models.load import (
    check_model,
    check_vocabulary,
    load_base,
    load_tokenizer,
    read_config,
)
from colearn.rollout.agents import ChatFormat, template_text

FIELD = "models.*.path"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
DEEP = "[" * 100_000
Damage = Callable[[Path], Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_model(tmp_path_factory.mktemp("whole")))


def writes(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def cuts(name: str, share: float) -> Damage:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return cut


def says(**settings: Any) -> Damage:
    def change(folder: Path) -> None:
        known = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(known | settings))

    return change


def loses(name: str) -> Damage:
    def lose(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        del tensors[name]
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})

    return lose


def indexed(index: str) -> Damage:
    def move(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")
        (folder / INDEX).write_text(index)

    return move


LAYER = "model.layers.0.mlp.up_proj.weight"
SHARDS = json.dumps({"metadata": {}, "weight_map": {LAYER: "model-00002-of-00002.safetensors"}})

BEFORE_A_WEIGHT_IS_READ: dict[str, Damage] = {
    "cut safetensors": cuts(WEIGHTS, 0.5),
    "a cut header": cuts(WEIGHTS, 0.001),
    "no bytes of weights": writes(WEIGHTS, ""),
    "noise for weights": writes(WEIGHTS, bytes(range(256)) * 400),
    "no weights": lambda folder: (folder / WEIGHTS).unlink(),
    "a missing shard": indexed(SHARDS),
    "a damaged index": indexed("["),
    "an index of another shape": indexed("[]"),
    "no bytes of a tokenizer": writes("tokenizer.json", ""),
    "a tokenizer without fields": writes("tokenizer.json", "{}"),
    "a tokenizer that is a list": writes("tokenizer.json", "[]"),
    "a tokenizer that is deep": writes("tokenizer.json", DEEP),
    "a cut tokenizer": cuts("tokenizer.json", 0.5),
    "no bytes of its config": writes("tokenizer_config.json", ""),
    "its config is a list": writes("tokenizer_config.json", "[]"),
    "its config is deep": writes("tokenizer_config.json", DEEP),
    "no bytes of a config": writes("config.json", ""),
    "a config that is a list": writes("config.json", "[]"),
    "a config that is deep": writes("config.json", DEEP),
    "a config that is no text": writes("config.json", b"\xff\xfe\x00"),
    "an unknown model": says(model_type="nosuch"),
    "a number in words": says(num_attention_heads="four"),
    "fewer layers than none": says(num_hidden_layers=-1),
    "no layers": says(num_hidden_layers=0),
    "no width": says(hidden_size=0),
    "a vocabulary of fewer words than the tokenizer's": says(vocab_size=100),
    "a template that is no text": writes("chat_template.jinja", b"\xff\xfe\x00"),
}
WHEN_WEIGHTS_ARE_READ: dict[str, Damage] = {
    "other shapes": says(hidden_size=64),
    "another vocabulary": says(vocab_size=300),
    "a missing weight": loses(LAYER),
    "a missing head": loses("lm_head.weight"),
    "no heads": says(num_attention_heads=0),
    "an unknown rope": says(rope_parameters={"rope_type": "x", "rope_theta": 1.0}),
}


def damaged(whole: Path, folder: Path, damage: Damage) -> str:
    shutil.copytree(whole, folder / "model")
    damage(folder / "model")
    return str(folder / "model")


def complaint(call: Callable[..., Any], *arguments: Any, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **settings)
    told = str(caught.value)
    assert "\n" not in told and len(told) < 700
    return told


def load(path: str, *, head: bool = True) -> Any:
    device = torch.device("cpu")
    return load_base(path, compute="float32", trained=True, device=device, field=FIELD, head=head)


@pytest.mark.parametrize("name", {**BEFORE_A_WEIGHT_IS_READ, **WHEN_WEIGHTS_ARE_READ})
def test_a_damaged_model_is_told_of_before_a_run_if_it_can_be_and_when_it_loads(
    whole, tmp_path, name
):
    path = damaged(whole, tmp_path, {**BEFORE_A_WEIGHT_IS_READ, **WHEN_WEIGHTS_ARE_READ}[name])
    if name in BEFORE_A_WEIGHT_IS_READ:
        assert complaint(check_model, path, field=FIELD).startswith(f"{FIELD}: ")

    def everything() -> None:
        tokenizer = load_tokenizer(path, field=FIELD)
        check_vocabulary(tokenizer, read_config(path, FIELD).vocab_size, FIELD)
        load(path)

    assert complaint(everything).startswith(f"{FIELD}: ")


def test_a_whole_model_is_not_complained_of(whole):
    check_model(str(whole), field=FIELD)
    assert load(str(whole)).positions == 1024


def test_shapes_that_differ_are_named(whole, tmp_path, capfd):
    told = complaint(load, damaged(whole, tmp_path, says(vocab_size=300)))
    assert "(lm_head.weight has shape (266, 32) in the file and (300, 32) by config.json)" in told
    assert capfd.readouterr() == ("", "")


def test_a_weight_that_no_file_holds_is_named_and_not_drawn(whole, tmp_path):
    assert f"(no file holds {LAYER})" in complaint(load, damaged(whole, tmp_path, loses(LAYER)))


def test_a_head_that_is_dropped_may_be_missing(whole, tmp_path):
    path = damaged(whole, tmp_path, loses("lm_head.weight"))
    assert load(path, head=False).positions == 1024


TEMPLATES = {
    "does not parse": "{% for %}",
    "raises": "{{ raise_exception('no system turn\\nhere') }}",
    "adds what cannot be added": "{{ messages + 1 }}",
    "is nested": "{{" + "(" * 5000 + "}}",
    "calls itself": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "counts too far": "{% for a in range(10**9) %}{% endfor %}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_cannot_be_rendered_is_told_of(whole, tmp_path, name):
    path = tmp_path / "chat.jinja"
    path.write_text(TEMPLATES[name])
    tokenizer = load_tokenizer(str(whole), field=FIELD)
    told = complaint(ChatFormat, tokenizer, chat=str(path))
    assert told.startswith("agents.chat: the template cannot be rendered (")


def test_a_template_file_that_is_no_text_is_named(whole, tmp_path):
    path = tmp_path / "chat.jinja"
    path.write_bytes(b"\xff")
    tokenizer = load_tokenizer(str(whole), field=FIELD)
    told = complaint(ChatFormat, tokenizer, chat=str(path))
    assert told == f"agents.chat: {path} is not UTF-8 text; save it as UTF-8"


def test_a_template_that_does_not_end_for_one_text_is_ended(whole, tmp_path, monkeypatch):
    """One that never ends is found when it is first opened, in a child."""
    monkeypatch.setattr(template_text, "SECONDS", 0.3)
    endless = "{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}"
    endless = "{% if messages[0].content == 'wait' %}" + endless + "{% endif %}"
    path = damaged(whole, tmp_path, writes("chat_template.jinja", endless))
    before = set(threading.enumerate())
    tokenizer = load_tokenizer(path, field=FIELD)
    assert complaint(ChatFormat, tokenizer, system="wait") == (
        "agents.chat: the template has not ended after 0.3 seconds; give another .jinja template "
        "or 'plain'"
    )
    until = time.monotonic() + 600
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.05)
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"num_hidden_layers": 0, "layer_types": []}, "num_hidden_layers of config.json is 0, "),
        (
            {"model_type": "gpt2", "num_hidden_layers": -1, "layer_types": None},
            "num_hidden_layers of config.json is -1, ",
        ),
        (
            {"model_type": "gpt_neox", "num_hidden_layers": -1, "layer_types": None},
            "num_hidden_layers of config.json is -1, ",
        ),
    ],
)
def test_a_size_below_one_is_named(
    whole: Path, tmp_path: Path, settings: dict[str, Any], line: str
) -> None:
    """transformers builds a model without layers from it."""
    with pytest.raises(ConfigError, match=line):
        read_config(damaged(whole, tmp_path, says(**settings)), FIELD)


def test_a_tokenizer_of_more_added_tokens_than_a_model_has_is_refused_before_it_is_opened(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it takes minutes of processor time."""
    opened: list[str] = []
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda path, **_: opened.append(path))

    def adds(folder: Path) -> None:
        path = folder / "tokenizer.json"
        known = json.loads(path.read_text())
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        known["added_tokens"] += [
            {"id": 10**6 + number, "content": f"<{number}>", **flags} for number in range(20_001)
        ]
        path.write_text(json.dumps(known))

    with pytest.raises(ConfigError, match=r"2000[0-9] entries in added_tokens; 20000 are the most"):
        load_tokenizer(damaged(whole, tmp_path, adds), field=FIELD)
    assert opened == []
