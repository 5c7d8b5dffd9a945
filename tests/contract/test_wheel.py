"""The wheel holds everything: installed without the repository, the commands say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_install import install_wheel

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


def _output(python: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(
        [python, *arguments], check=True, capture_output=True, text=True, cwd="/", env=environment
    )
    return run.stdout
