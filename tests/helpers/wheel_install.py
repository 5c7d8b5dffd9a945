"""The wheel, installed in an environment of its own that sees this one's dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "colearn", "algorithms", "tasks", "configs")

SMALL = (
    *("--algorithms", "magrpo", "--seeds", "1", "--workers", "1"),
    *("--set", "train.environment_steps=120", "--set", "evaluation.every=100"),
)
"""Options of a quickstart with one update."""


def install_wheel(folder: Path) -> Path:
    """Build and install it in a folder that is empty; the Python of the new environment."""
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
    # on a path of its own an egg-info of the clone would count as this distribution
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(install, check=True, capture_output=True, cwd="/", env=alone)
    # a line of a .pth file adds a folder, without the .pth files in it: not the editable finder
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python
