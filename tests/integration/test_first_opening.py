"""Model folders and templates that others made end within a limit, in one line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import save_model

from colearn.errors import ConfigError
from colearn.models.load import check_model, load_base, load_end_ids, load_tokenizer, read_config
from colearn.programs.files import first_opening
from colearn.programs.files.first_opening import check_template
from colearn.rollout.agents import ChatFormat

NEVER = 10_000
"""A limit in seconds that no machine reaches before a file is opened or counted."""
Edit = Callable[[Path], None]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache: nothing has been opened before. What ends by itself has no limit of time."""
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(first_opening, "SECONDS", NEVER)
    monkeypatch.setattr(first_opening, "_PATIENCE", float(NEVER))
    monkeypatch.setattr(first_opening, "MEMORY", 1 << 30)
    first_opening._reason.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the children that were started."""
    started: list[str] = []
    run = first_opening.subprocess.run

    def counted(command: list[str], **settings: Any) -> Any:
        started.append(command[6])
        return run(command, **settings)

    monkeypatch.setattr(first_opening.subprocess, "run", counted)
    return started


def changed(model: Path, folder: Path, edit: Edit) -> str:
    shutil.copytree(model, folder)
    edit(folder)
    return str(folder)


def settings_of(name: str, **values: Any) -> Edit:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return edit


def explodes(pattern: dict[str, str], content: str, times: int) -> dict[str, Any]:
    rule = {"type": "Replace", "pattern": pattern, "content": content}
    return {"type": "Sequence", "normalizers": [rule] * times}


ENDLESS = "its config or tokenizer "
"""The start of each reason: one of the limits ends the reader, whichever it reaches first."""
TOO_MUCH = {
    "a million layers": (
        settings_of("config.json", num_hidden_layers=1_000_000),
        "has 1000000 layers (num_hidden_layers); 2000 are the most",
    ),
    "a million layers within": (
        settings_of("config.json", text_config={"num_hidden_layers": 1e6}),
        "has 1000000 layers (num_hidden_layers)",
    ),
    "thousands of kinds of layers": (
        settings_of("config.json", layer_types=["full_attention"] * 3_000),
        "has 3000 layers (layer_types)",
    ),
    "a million experts": (
        settings_of("config.json", num_local_experts=1_000_000),
        "has 1000000 experts (num_local_experts)",
    ),
    "many layers of many experts": (
        settings_of("config.json", num_hidden_layers=1_900, num_experts=19_000),
        "has 36100000 experts in all layers",
    ),
    "30,000 added tokens": (
        settings_of(
            "tokenizer_config.json",
            added_tokens_decoder={str(k): {"content": f"<{k}>"} for k in range(30_000)},
        ),
        "has 30000 entries in added_tokens_decoder",
    ),
    "30,000 end tokens": (
        settings_of("generation_config.json", eos_token_id=list(range(30_000))),
        "has 30000 entries in eos_token_id",
    ),
    "ten million labels": (
        settings_of("config.json", num_labels=10_000_000),
        "has 10000000 entries in num_labels",
    ),
    "eight rules for a rare sign": (
        settings_of("tokenizer.json", normalizer=explodes({"String": "\u2603"}, "\u2603" * 16, 8)),
        ENDLESS,
    ),
    "three rules": (
        settings_of("tokenizer.json", normalizer=explodes({"String": "a"}, "a" * 16, 3)),
        "its config or tokenizer makes ",
    ),
    "rules of the decoder": (
        settings_of(
            "tokenizer.json",
            decoder={
                "type": "Sequence",
                "decoders": explodes({"String": "a"}, "a" * 16, 4)["normalizers"],
            },
        ),
        ENDLESS,
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_takes_too_much_is_one_line(
    name: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit, told = TOO_MUCH[name]
    if told == ENDLESS:
        monkeypatch.setattr(first_opening, "SECONDS", 1)
    path = changed(model, tmp_path / "m", edit)
    with pytest.raises(ConfigError) as caught:
        load_tokenizer(path, field="models.*.path")
    text = str(caught.value)
    assert text.startswith(f"models.*.path: cannot load '{path}'; give a folder or hub name")
    assert told in text and "\n" not in text


def test_a_damaged_file_hides_no_other(model: Path, tmp_path: Path) -> None:
    path = changed(model, tmp_path / "m", TOO_MUCH["three rules"][0])
    Path(path, "tokenizer_config.json").write_text("[0]")
    with pytest.raises(ConfigError, match="tokenizer makes "):
        check_model(path, field="models.*.path")


@pytest.mark.parametrize(
    "opens",
    [
        lambda path: read_config(path, "models.*.path"),
        lambda path: load_end_ids(path, field="models.*.path"),
        lambda path: check_model(path, field="models.*.path"),
        lambda path: load_base(
            path, compute="float32", trained=False, device="cpu", field="models.*.path"
        ),
    ],
    ids=["config", "end ids", "check", "weights"],
)
def test_every_reader_opens_a_folder_apart_first(
    opens: Callable[[str], Any], model: Path, tmp_path: Path
) -> None:
    path = changed(model, tmp_path / "m", TOO_MUCH["a million layers"][0])
    with pytest.raises(ConfigError, match="has 1000000 layers"):
        opens(path)


def test_the_base_of_an_adapter_is_opened_apart(model: Path, tmp_path: Path) -> None:
    base = changed(model, tmp_path / "base", TOO_MUCH["a million layers"][0])
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(model / name, adapter)
    (adapter / "adapter_model.safetensors").touch()
    (adapter / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": base})
    )
    with pytest.raises(ConfigError, match="has 1000000 layers"):
        load_base(
            str(adapter),
            compute="float32",
            trained=False,
            device=torch.device("cpu"),
            field="weights",
            adapted=True,
        )


TEMPLATES = {
    "memory": "{{ 'x' * 10**10 }}",
    "a loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a long text": "{% for a in range(99999) %}{{ messages[0].content * 99 }}{% endfor %}",
    "a power by a setting": "{% if deep %}{{ 10**99999999 }}{% endif %}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_takes_too_much_is_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_opening, "SECONDS", 1)
    with pytest.raises(ConfigError) as caught:
        check_template(TEMPLATES[name], {"deep": True})
    text = str(caught.value)
    assert text.startswith("agents.chat: the template ") and "\n" not in text
    assert text.endswith("; give another .jinja template or 'plain'")


def test_the_template_of_a_folder_is_rendered_apart(model: Path, tmp_path: Path) -> None:
    def edit(folder: Path) -> None:
        (folder / "chat_template.jinja").write_text(TEMPLATES["memory"])

    tokenizer = load_tokenizer(changed(model, tmp_path / "m", edit), field="models.*.path")
    with pytest.raises(ConfigError, match=r"^agents.chat: the template "):
        ChatFormat(tokenizer)
    ChatFormat(tokenizer, chat="plain")  # whoever does not render it may use the model


def test_a_template_file_is_rendered_apart(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text(TEMPLATES["memory"])
    tokenizer = load_tokenizer(str(model), field="models.*.path")
    with pytest.raises(ConfigError, match=r"^agents.chat: the template "):
        ChatFormat(tokenizer, chat=str(path))


def test_a_folder_is_opened_apart_once_for_its_content(
    model: Path, tmp_path: Path, children: list[str]
) -> None:
    for _ in range(2):
        load_tokenizer(str(model), field="models.*.path")
        first_opening._reason.cache_clear()  # as another process
    copy = changed(model, tmp_path / "copy", lambda folder: None)
    load_tokenizer(copy, field="models.*.path")
    assert children == ["model"]
    settings_of("config.json", initializer_range=0.5)(Path(copy))
    load_tokenizer(copy, field="models.*.path")
    assert children == ["model", "model"]


def test_what_was_refused_is_opened_again(model: Path, tmp_path: Path, children: list[str]) -> None:
    path = changed(model, tmp_path / "m", TOO_MUCH["a million layers"][0])
    for _ in range(2):
        with pytest.raises(ConfigError):
            read_config(path, "models.*.path")
        first_opening._reason.cache_clear()
    assert children == ["model", "model"]


def test_a_cache_that_cannot_be_written_costs_time_alone(
    model: Path, cache: Path, children: list[str]
) -> None:
    cache.touch()  # a file in place of the folder
    for _ in range(2):
        load_tokenizer(str(model), field="models.*.path")
        first_opening._reason.cache_clear()
    assert children == ["model", "model"]


def test_a_damaged_file_is_the_readers_to_report(model: Path, tmp_path: Path) -> None:
    def edit(folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{")

    with pytest.raises(ConfigError, match=r"cannot load .*\(.*\)$") as caught:
        load_tokenizer(changed(model, tmp_path / "m", edit), field="models.*.path")
    assert "its config or tokenizer" not in str(caught.value)


def test_the_largest_published_models_are_let_be(model: Path, tmp_path: Path) -> None:
    def edit(folder: Path) -> None:
        largest = {"num_hidden_layers": 126, "layer_types": ["full_attention"] * 126}
        settings_of("config.json", **largest, num_experts=384, vocab_size=2_000_000)(folder)

    load_tokenizer(changed(model, tmp_path / "m", edit), field="models.*.path")


def test_the_child_runs_no_code_of_the_current_folder(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "ran"
    for name in ("tokenizers", "jinja2", "json", "resource"):
        (tmp_path / f"{name}.py").write_text(f"open({os.fspath(mark)!r}, 'w')\nraise SystemExit")
    load_tokenizer(str(model), field="models.*.path")
    check_template("{{ messages[0].content }}", {})
    assert not mark.exists()
