"""The short programs in examples/: their form, and that each runs to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from documented import at_a_small_price

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
NEEDS_A_MODEL = "pretrained.py"


def test_there_are_ten_and_the_readme_names_each() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert len(PROGRAMS) >= 10
    assert [name for name in PROGRAMS if f"({name})" not in page] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_and_begins_with_hardware_time_and_what_it_shows(name: str) -> None:
    lines = (EXAMPLES / name).read_text().splitlines()
    assert lines[0].startswith("# Hardware: ") and "minute" in lines[0]
    assert lines[1].startswith("# Shows: ")
    assert len(lines) < 60


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != NEEDS_A_MODEL])
def test_a_program_runs_to_its_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with every config made small as it is loaded."""
    at_a_small_price(monkeypatch)
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__main__")
    module.__file__ = str(EXAMPLES / name)
    monkeypatch.setitem(sys.modules, "__main__", module)  # so that its classes pickle
    exec(compile((EXAMPLES / name).read_text(), module.__file__, "exec"), vars(module))
    assert capsys.readouterr().out.strip()


@pytest.mark.real_model
def test_the_program_of_a_pretrained_model_runs_to_its_end(tmp_path: Path) -> None:
    model = os.environ["COLEARN_REAL_MODEL"]
    done = subprocess.run(
        [sys.executable, EXAMPLES / NEEDS_A_MODEL, model], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
