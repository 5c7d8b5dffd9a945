"""Runs forked from a process that has imported what they need."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from colearn.comparison.forks import Forks
from colearn.errors import ColearnError

PROBE = """
import json, os, sys, threading
print(json.dumps({
    "threads": os.environ["OMP_NUM_THREADS"],
    "parent": os.environ["COLEARN_PARENT"] == str(os.getppid()),
    "own session": os.getsid(0) == os.getpid(),
    "imported": "transformers.models.llama.modeling_llama" in sys.modules,
    "alone": len(os.listdir("/proc/self/task")) == 1,
    "input": sys.stdin.read(),
}), flush=True)
"""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    folder = tmp_path_factory.mktemp("forks")
    (folder / "probe.py").write_text(PROBE)
    (folder / "json.py").write_text("raise SystemExit('a stranger')")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with Forks({**os.environ, "OMP_NUM_THREADS": "3"}) as forks:
            yield forks
    finally:
        os.chdir(before)


def test_a_run_has_its_own_session_and_what_it_needs(forks: Forks, tmp_path: Path) -> None:
    fork = forks.start(["check", "probe:Task"], tmp_path / "log", append=False)
    assert fork.wait(120) == 2, "the module holds no task"
    told, mistake = (tmp_path / "log").read_text().splitlines()
    assert json.loads(told) == {
        "threads": "3",
        "parent": True,
        "own session": True,
        "imported": sys.platform == "linux",
        "alone": True,
        "input": "",
    }
    assert mistake.startswith("error: ") and "probe" in mistake


def test_a_log_is_written_anew_or_continued(forks: Forks, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier run\n")
    assert forks.start(["train"], log, append=True).wait(120) == 2
    first, second = log.read_text().splitlines()
    assert (first, second.partition(";")[0]) == ("of an earlier run", "error: config: missing")
    assert forks.start(["train"], log, append=False).wait(120) == 2
    assert log.read_text() == second + "\n"


def test_runs_end_in_any_order_and_a_signal_is_below_zero(forks: Forks, tmp_path: Path) -> None:
    held = forks.start(["train"], tmp_path / "held", append=False)
    os.kill(held.pid, signal.SIGSTOP)
    other = forks.start(["train"], tmp_path / "other", append=False)
    assert other.wait(120) == 2
    assert held.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        held.wait(0.01)
    os.killpg(held.pid, signal.SIGKILL)
    assert held.wait(120) == -signal.SIGKILL


ANEW = """
import torch
from colearn.comparison import fork_server
torch.accelerator.is_available = lambda: True
fork_server.main()
"""


def test_where_there_is_an_accelerator_a_run_starts_python_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probe.py").write_text(PROBE)
    real = subprocess.Popen

    def popen(arguments: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        return real([*arguments[:2], "-c", ANEW], **settings)

    monkeypatch.setattr("colearn.comparison.forks.subprocess.Popen", popen)
    with Forks({**os.environ, "OMP_NUM_THREADS": "3"}) as forks:
        fork = forks.start(["check", "probe:Task"], tmp_path / "log", append=False)
        assert fork.wait(120) == 2
    told = json.loads((tmp_path / "log").read_text().splitlines()[0])
    assert told["imported"] is False
    assert (told["threads"], told["parent"], told["own session"]) == ("3", True, True)


def test_it_is_said_when_nothing_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Forks({}) as forks, pytest.raises(ColearnError, match=r"ended \(exit code 1\)"):
        forks.start(["train"], tmp_path / "log", append=False)
