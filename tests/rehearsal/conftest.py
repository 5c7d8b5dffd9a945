"""Runs cases in processes that see four devices in name only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colearn.programs.files.cache import cache_folder
from tests.rehearsal.guard_library import NoGuard, compiled

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.rehearsal)


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    try:
        library = compiled(cache_folder() / "rehearsal")
    except NoGuard as why:
        pytest.skip(str(why))
    paths = [str(ROOT), str(ROOT / "tests" / "helpers"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.rehearsal.process", str(library)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    assert process.stdout is not None and process.stdout.readline() == "\n"
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=600)


@pytest.fixture
def rehearse(server: subprocess.Popen[str], tmp_path: Path) -> Callable[..., Any]:
    """Returns the value of a case, a function of `tests.rehearsal`, in a process of its own.

    Errors: AssertionError with the traceback of the case.
    """

    def run(case: str, fault: tuple[str, str, str] | None = None, **arguments: Any) -> Any:
        module, _, function = case.partition(":")
        result = tmp_path / "result.json"
        result.unlink(missing_ok=True)
        asked = [f"tests.rehearsal.{module}", function, arguments, fault, str(result)]
        assert server.stdin is not None and server.stdout is not None
        print(json.dumps(asked), file=server.stdin, flush=True)
        server.stdout.readline()
        assert result.exists(), "the process of the case ended without a result"
        answer = json.loads(result.read_text())
        assert "error" not in answer, f"{answer['error']}\n{answer['trace']}"
        return answer["value"]

    return run
