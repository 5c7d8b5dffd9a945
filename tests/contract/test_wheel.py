"""The wheel holds everything: installed without the repository, the commands say the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny import save_model
from wheel_install import ROOT, SMALL, install_wheel

pytestmark = pytest.mark.slow

COMMANDS = (("--help",), ("tasks",), ("algorithms",), ("configs",), ("check", "str_build"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_is_what_is_imported(installed: Path) -> None:
    code = "import colearn, colearn.tasks, colearn.algorithms, colearn.configs as c; "
    code += (
        "print(colearn.__file__, colearn.tasks.__file__, colearn.algorithms.__file__, *c.__path__)"
    )
    places = _output(installed, "-c", code).split()
    assert all(place.startswith(str(installed.parents[1])) for place in places), places


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_says_the_same_from_the_wheel(installed: Path, command: tuple[str, ...]) -> None:
    here = _output(Path(sys.executable), "-m", "colearn", *command)
    assert _output(installed, "-m", "colearn", *command) == here


def test_the_wheel_installs_the_command(installed: Path) -> None:
    run = subprocess.run(
        [installed.parent / "colearn", "configs"],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert "quickstart" in run.stdout


def test_the_quickstart_is_compared_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    _output(installed, "-m", "colearn", "compare", "quickstart", *SMALL, cwd=tmp_path)
    summary = json.loads((tmp_path / "comparison" / "summary.json").read_text())
    assert list(summary["algorithms"]) == ["magrpo"]
    page = (tmp_path / "comparison" / "report.html").read_text()
    assert "<html" in page and "magrpo" in page


def test_the_workflow_of_the_docs_is_checked_and_trained_in_an_empty_folder(
    installed: Path, tmp_path: Path
) -> None:
    """docs/tutorials/04_workflow.md: its 25 lines, and its config with another model."""
    text = (ROOT / "docs" / "tutorials" / "04_workflow.md").read_text()
    code, check, config = re.findall(r"```(?:python|yaml)\n(.*?)```", text, re.S)[:3]
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "quiz.py").write_text(code)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 25
    _output(installed, "-c", f"from quiz import *\n{check}", cwd=folder)
    settings = yaml.safe_load(config)
    settings["models"]["shared"] = {"path": save_model(tmp_path / "model")}
    settings["agents"]["*"]["sampling"]["max_tokens"] = 4
    settings |= {
        "train": {"environment_steps": 8, "episodes": 1},
        "evaluation": {"episodes": 1},
        "run": {"device": "cpu"},
    }
    (folder / "quiz.yaml").write_text(yaml.safe_dump(settings))
    train = ("-m", "colearn", "train", "quiz.yaml", "--algorithm", "mhgpo", "--out", "run")
    _output(installed, *train, cwd=folder)
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) >= 3, "an evaluation before and after, and an update between"
    assert '"f1"' in lines[-1]


def _output(python: Path, *arguments: str, cwd: Path | str = "/") -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(
        [python, *arguments], check=True, capture_output=True, text=True, cwd=cwd, env=environment
    )
    return run.stdout
