"""The wheel alone is enough for uvx, which installs every dependency anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_install import SMALL, install_wheel

pytestmark = pytest.mark.network


def test_uvx_compares_the_quickstart_from_the_wheel(tmp_path: Path) -> None:
    uvx = shutil.which("uvx")
    assert uvx is not None, "pip install uv"
    built, empty = tmp_path / "built", tmp_path / "empty"
    built.mkdir()
    empty.mkdir()
    install_wheel(built)
    (wheel,) = built.glob("colearn_llm-*.whl")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(
        [uvx, "--python", version, "--from", wheel, "colearn", "compare", "quickstart", *SMALL],
        check=True,
        cwd=empty,
        env=environment,
    )
    assert (empty / "comparison" / "report.html").is_file()
