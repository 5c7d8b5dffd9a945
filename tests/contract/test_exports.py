"""What `colearn` exports at run time, and to type checkers in a user's script."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import colearn

ROOT = Path(__file__).parents[2]
NAMES = [name for name in colearn.__all__ if name != "__version__"]
SCRIPT = f"""from colearn import {", ".join(NAMES)}

config = load_config("quickstart", {{"train.environment_steps": 64}})
experiment = Experiment(config, "runs/first")
trees: list[Tree[str]] = experiment.trees()
record = experiment.run()
reveal_type(config.train.environment_steps)
reveal_type(record.environment_steps)
reveal_type(read_run(open_run("runs/first")).evaluations[0].environment_steps)
""" + "".join(f"reveal_type({name})\n" for name in NAMES)
MYPY = """[mypy]
follow_imports = silent
[mypy-torch.*,transformers.*,peft.*,accelerate.*,matplotlib.*,scipy.*,numpy.*]
follow_imports = skip
"""
"""The others' types are not looked at: that takes minutes."""
WRONG = """from colearn import load_config

load_config("quickstart").train.environment_stepz
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "mypy.ini").write_text(MYPY)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    return tmp_path


def test_every_name_is_what_its_module_has() -> None:
    assert set(NAMES) == set(colearn._HOMES)
    for name, home in colearn._HOMES.items():
        module = importlib.import_module(f"colearn.{home}")
        assert getattr(colearn, name) is getattr(module, name)
    assert set(NAMES) <= set(dir(colearn))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        colearn.nothing  # noqa: B018


@pytest.mark.slow
def test_mypy_knows_the_types_in_a_users_script(scripts: Path) -> None:
    told = run(scripts, sys.executable, "-m", "mypy", "script.py")
    assert "error:" not in told
    shown = [line.split("Revealed type is ")[1] for line in told.splitlines() if "Revealed" in line]
    assert [one.strip('"').removeprefix("builtins.") for one in shown[:3]] == ["int"] * 3
    assert len(shown) == 3 + len(NAMES) and not [one for one in shown if one == '"Any"']
    wrong = run(scripts, sys.executable, "-m", "mypy", "wrong.py")
    assert "environment_stepz" in wrong


@pytest.mark.slow
def test_pyright_knows_the_types_in_a_users_script(scripts: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None or "pyright" not in run(scripts, pyright, "--version"):
        pytest.skip("no pyright that starts")
    report = json.loads(run(scripts, pyright, "--outputjson", "script.py", "wrong.py"))
    told = report["generalDiagnostics"]
    errors = [one for one in told if one["severity"] == "error"]
    assert [Path(one["file"]).name for one in errors] == ["wrong.py"], errors
    shown = [one["message"] for one in told if one["severity"] == "information"]
    assert len(shown) == 3 + len(NAMES) and not [
        one for one in shown if one.endswith('is "Unknown"')
    ]


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout
