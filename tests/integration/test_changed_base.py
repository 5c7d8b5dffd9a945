"""Checkpoints on the models that they were trained on: altered ones are one line, copies resume."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config, resolve
from colearn.deploy.export import export_run
from colearn.entry.cli import main
from colearn.errors import CheckpointError
from colearn.models.sources import check_sources, sources_of
from colearn.runs.record import RunFolder
from colearn.runs.record.checksums import write_checksums
from colearn.training.loop import Experiment

LORA = {"rank": 2}


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


def settings(folder: Path) -> dict[str, Any]:
    """ada and ben each on a base of their own, a critic on a third."""
    return {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {
            "ada": {"path": str(folder / "ada")},
            "ben": {"path": str(folder / "ben"), "lora": LORA},
        },
        "agents": {"*": {"sampling": {"max_tokens": 3}}},
        "critic": {"path": str(folder / "critic"), "lora": LORA},
        "train": {"environment_steps": 2, "episodes": 2},
        "run": {"device": "cpu"},
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three bases and the run on them."""
    folder = tmp_path_factory.mktemp("trained")
    for number, name in enumerate(("ada", "ben", "critic")):
        save_model(folder / name, seed=number)
    Experiment(load_config(settings(folder)), folder / "run").run()
    return folder


@pytest.fixture
def elsewhere(trained: Path, tmp_path: Path) -> Path:
    """A copy of that folder, whose bases a test may alter."""
    return shutil.copytree(trained, tmp_path / "elsewhere")


def resume(config: dict[str, Any], run: Path) -> None:
    """Load the newest checkpoint to train for longer."""
    longer = load_config(config, {"train.environment_steps": 4})
    Experiment(longer, run, resume=True).record.close()


def alter(file: Path) -> None:
    """Another content of the same size, and the time of the old one."""
    status, content = file.stat(), bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def asked(folder: Path, **changes: Any) -> dict[str, Any]:
    """One agent that answers the prompts of a file."""
    folder.mkdir(exist_ok=True)
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"say {k}"}) + "\n" for k in range(6)))
    if not (folder / "ada").exists():
        save_model(folder / "ada")
    return {
        "task": {"name": "dataset", "path": str(rows), "reward": "reward_functions:length"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": str(folder / "ada")}},
        "agents": {"*": {"sampling": {"max_tokens": 3}}},
        "train": {"environment_steps": 2, "episodes": 1},
        "run": {"device": "cpu"},
        **changes,
    }


def test_a_resumed_run_on_other_rows_is_one_line(tmp_path: Path) -> None:
    """They do not hinder an export."""
    config, run = asked(tmp_path), tmp_path / "run"
    Experiment(load_config(config), run).run()
    rows = tmp_path / "rows.jsonl"
    kept = rows.read_text()
    rows.write_text(kept.replace("say 1", "say 7"))
    with pytest.raises(
        CheckpointError,
        match=r"^task\.path: rows\.jsonl is not the one .*; put the file back, [^\n]*$",
    ):
        resume(config, run)
    export_run(run, tmp_path / "agents")
    rows.write_text(kept)
    resume(config, run)


def test_a_changed_corpus_is_one_line(tmp_path: Path) -> None:
    """A passage altered, one added; another kind of file is no data."""
    corpus = tmp_path / "corpus"
    (corpus / "more").mkdir(parents=True)
    (corpus / "more" / "a.txt").write_text("Red is warm.")
    questions = tmp_path / "questions.jsonl"
    row = {"question": "What is warm?", "answers": ["red"]}
    questions.write_text("".join(json.dumps(row | {"question": f"{k}?"}) + "\n" for k in range(9)))
    task = {"name": "search_single", "data": str(questions), "corpus": str(corpus)}
    run = resolve(load_config({**asked(tmp_path), "task": task}))

    def bases() -> Any:
        return sources_of(run, {})

    kept = bases()
    assert kept["task.corpus"].keys() == {"more/a.txt"}
    (corpus / "notes.bin").write_text("no data")
    check_sources(tmp_path / "checkpoint", kept, bases(), resumes=True)
    (corpus / "more" / "a.txt").write_text("Blue is warm.")
    line = r"^task\.corpus: more/a\.txt is not the one .*; put the file back, [^\n]*$"
    with pytest.raises(CheckpointError, match=line):
        check_sources(tmp_path / "checkpoint", kept, bases(), resumes=True)
    (corpus / "more" / "a.txt").write_text("Red is warm.")
    (corpus / "b.md").write_text("Blue is cold.")
    with pytest.raises(CheckpointError, match=r"^task\.corpus: b\.md is not the one "):
        check_sources(tmp_path / "checkpoint", kept, bases(), resumes=True)
    check_sources(tmp_path / "checkpoint", kept, bases())


def test_a_corpus_named_by_a_bare_word_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("Red is warm.")
    row = json.dumps({"question": "What is warm?", "answers": ["red"]}) + "\n"
    (tmp_path / "questions.jsonl").write_text(row * 9)
    task = {"name": "search_single", "data": "questions.jsonl", "corpus": "corpus"}
    monkeypatch.chdir(tmp_path)
    run = resolve(load_config({**asked(tmp_path), "task": task}))
    assert sources_of(run, {})["task.corpus"].keys() == {"a.txt"}


@pytest.mark.parametrize(("name", "field"), [("ben", "models.ben.path"), ("critic", "critic.path")])
def test_a_resumed_run_on_altered_weights_is_one_line(
    elsewhere: Path, name: str, field: str
) -> None:
    alter(elsewhere / name / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"^{field}: model\.safetensors of this [^\n]*$"):
        resume(settings(elsewhere), elsewhere / "run")


def test_weights_that_a_checkpoint_holds_whole_are_not_the_bases(elsewhere: Path) -> None:
    alter(elsewhere / "ada" / "model.safetensors")
    resume(settings(elsewhere), elsewhere / "run")
    file = elsewhere / "ada" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": 7}))
    with pytest.raises(CheckpointError, match=r"^models\.ada\.path: tokenizer_config\.json of"):
        resume(settings(elsewhere), elsewhere / "run")


def test_a_copy_of_a_base_resumes_the_run_from_elsewhere(elsewhere: Path) -> None:
    config, run = settings(elsewhere), elsewhere / "run"
    resume(config, run)
    assert RunFolder(run).config().models["ben"].path == str(elsewhere / "ben")
    config["models"]["ben"]["path"] = str(elsewhere / "critic")
    with pytest.raises(CheckpointError, match=r"^models\.ben\.path: model\.safetensors of this"):
        resume(config, run)


def test_export_and_evaluate_refuse_an_altered_base(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    resume(settings(elsewhere), elsewhere / "run")  # from now on it names these bases
    alter(elsewhere / "ben" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"^models\.ben\.path: model\.safetensors of this"):
        export_run(elsewhere / "run", elsewhere / "out")
    monkeypatch.setattr(sys, "argv", ["colearn", "evaluate", str(elsewhere / "run")])
    with pytest.raises(SystemExit):
        main()
    assert "models.ben.path: model.safetensors of this model" in capsys.readouterr().err


def test_a_checkpoint_without_digests_resumes(trained: Path, elsewhere: Path) -> None:
    newest = RunFolder(elsewhere / "run").checkpoints.all()[-1]
    (newest.path / "sources.json").unlink()
    write_checksums(newest.path)
    resume(settings(trained), elsewhere / "run")
