"""The wheel holds everything: installed without the repository, the commands say the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "colearn", "algorithms", "tasks", "configs")
COMMANDS = (("--help",), ("tasks",), ("algorithms",), ("configs",), ("check", "str_build"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that holds the wheel and sees this one's dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(
                path, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(path, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, cwd="/")
    (wheel,) = folder.glob("colearn_llm-*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd="/")
    # a line of a .pth file adds a folder, without the .pth files in it: not the editable finder
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


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
