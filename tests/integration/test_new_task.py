"""`colearn new task` writes a task that holds, is tested, trains, and is ready to be changed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from colearn.config import load_config
from colearn.entry.cli import main, new
from colearn.errors import ConfigError
from colearn.models import embedded
from colearn.runs.comparison.plan import make_plan
from colearn.training.loop import Experiment

FILES = {"README.md", "night_shift.py", "test_night_shift.py", "night_shift.yaml"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes for `night_shift`."""
    folder = tmp_path_factory.mktemp("new") / "night_shift"
    new.task("night_shift", folder)
    return folder


@pytest.fixture
def standing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, while one stands in it; its module is forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("night_shift", None)


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def colearn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Run `colearn ...` in an empty folder; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["colearn", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return run


def python(folder: Path, *arguments: str) -> str:
    """Run Python in the folder, as somebody who stands there does; what it prints."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_prints_the_commands_that_the_readme_lists(colearn: Command, tmp_path: Path) -> None:
    code, out, _ = colearn("new", "task", "night_shift", "--out", "my tasks/first")
    assert {path.name for path in (tmp_path / "my tasks" / "first").iterdir()} == FILES
    readme = (tmp_path / "my tasks" / "first" / "README.md").read_text()
    listed = [line for line in readme.splitlines() if line.startswith("    ")]
    printed = [line for line in out.splitlines() if line.startswith("  ")]
    assert code == 0 and len(listed) == 4
    assert [line.strip() for line in printed] == [
        "cd 'my tasks/first'",
        *(line.strip() for line in listed),
    ]


def test_an_empty_folder_may_be_filled_from_inside(colearn: Command, tmp_path: Path) -> None:
    code, out, _ = colearn("new", "task", "night_shift", "--out", ".")
    assert code == 0 and "cd " not in out and (tmp_path / "night_shift.yaml").is_file()


def test_the_written_test_passes(folder: Path) -> None:
    out = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_night_shift.py")
    assert "3 passed" in out


def test_the_written_task_is_found_and_holds_the_contract(
    colearn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, out, _ = colearn("check", "night_shift:NightShift", "--model", "embedded-tiny")
    sys.modules.pop("night_shift", None)
    first, second, third = out.splitlines()
    assert code == 0
    assert first == "night_shift:NightShift: holds the contract"
    assert second.startswith("random play: return ")
    assert third.startswith("untrained play: return ") and third.endswith("model 'embedded-tiny'")


def test_the_written_code_is_linted_and_formatted(folder: Path) -> None:
    same = ("--isolated", "--no-cache", "--line-length=100", ".")
    python(folder, "-m", "ruff", "check", "--select=B,E,F,I,UP", *same)
    python(folder, "-m", "ruff", "format", "--check", *same)


def test_the_written_config_plans_three_algorithms(standing: Path) -> None:
    plan = make_plan(load_config("night_shift.yaml"))
    assert {run.name.split("-")[0] for run in plan.runs} == {"collm_cc", "collm_dc", "magrpo"}


def test_the_written_config_trains(
    standing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    short = replace(embedded.RECIPES["embedded-tiny"], steps=2, episodes=64)
    monkeypatch.setitem(embedded.RECIPES, "embedded-tiny", short)
    config = load_config("night_shift.yaml", ["train.environment_steps=32", "evaluation.repeats=1"])
    result = Experiment(config, tmp_path / "run").run()
    assert result.status == "finished" and "both_done" in result.last


NAMES = {
    "NightShift": "lower_snake_case",
    "night-shift": "lower_snake_case",
    "night__shift": "lower_snake_case",
    "2_rooms": "lower_snake_case",
    "class": "a word of Python",
    "none": "a word of Python",
    "str_build": "there is a task 'str_build' already",
    "random": "would hide the module random",
    "colearn": "would hide the module colearn",
    "outcome": "the class Outcome would hide another",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cannot_be_is_one_line_and_writes_nothing(
    name: str, colearn: Command, tmp_path: Path
) -> None:
    code, out, err = colearn("new", "task", name)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert err.startswith("error: NAME: ") and NAMES[name] in err
    assert list(tmp_path.iterdir()) == []


def test_no_name_gives_a_class_that_the_task_imports(folder: Path, tmp_path: Path) -> None:
    tree = ast.parse((folder / "night_shift.py").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    classes = {alias.name for node in imports for alias in node.names if alias.name.istitle()}
    assert classes == {"Mapping", "Outcome", "Sequence"}
    for name in classes:
        with pytest.raises(ConfigError, match=f"the class {name} would hide"):
            new.task(name.lower(), tmp_path / "folder")


def test_a_folder_with_something_in_it_is_left_alone(colearn: Command, tmp_path: Path) -> None:
    (tmp_path / "night_shift").mkdir()
    (tmp_path / "night_shift" / "mine.txt").write_text("mine")
    told = "a folder night_shift is here already; choose another name, or a folder with --out"
    assert colearn("new", "task", "night_shift") == (2, "", f"error: NAME: {told}\n")
    told = "--out night_shift: is not empty; name another folder"
    assert colearn("new", "task", "other", "--out", "night_shift") == (2, "", f"error: {told}\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["night_shift", "mine.txt"]


def test_a_name_without_its_kind_is_one_line_with_the_remedy(colearn: Command) -> None:
    told = "error: colearn new: no kind 'night_shift'; write colearn new task NAME\n"
    assert colearn("new", "night_shift") == (2, "", told)


def test_an_out_that_is_a_file_is_one_line(colearn: Command, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    code, _, err = colearn("new", "task", "night_shift", "--out", "out")
    assert (code, err) == (2, "error: --out out: is a file; name a folder\n")
    assert (tmp_path / "out").read_text() == "mine"


def test_what_fails_half_way_leaves_nothing_behind(
    colearn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third file does not fit on the disk, and its first bytes did."""
    write = Path.write_text

    def full(path: Path, text: str, **rest: str) -> int:
        if path.suffix == ".yaml":
            write(path, text[:10], **rest)
            raise OSError(28, "No space left on device")
        return write(path, text, **rest)

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = colearn("new", "task", "night_shift", "--out", "deep/down/here")
    assert code == 2 and err.startswith("error: --out deep/down/here: No space left on device; ")
    assert list(tmp_path.iterdir()) == []
