"""Runs forked from a process that has imported what they need."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from colearn.config import load_config
from colearn.errors import ColearnError
from colearn.runs.comparison.api import compare
from colearn.runs.comparison.forks import Forks

PROBE = """
import gc, json, os, signal, sys, threading
print(json.dumps({
    "threads": os.environ["OMP_NUM_THREADS"],
    "parent": os.environ["COLEARN_PARENT"] == str(os.getppid()),
    "own session": os.getsid(0) == os.getpid(),
    "imported": "transformers.models.llama.modeling_llama" in sys.modules,
    "frozen": gc.get_freeze_count() > 100_000,
    "alone": len(os.listdir("/proc/self/task")) == 1,
    "broken pipe": signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN,
    "input": sys.stdin.read(),
}), flush=True)
"""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """One server for the tests of runs, which began before the first of them."""
    folder = tmp_path_factory.mktemp("forks")
    (folder / "probe.py").write_text(PROBE)
    (folder / "json.py").write_text("raise SystemExit('a stranger')")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        servers = started_servers(patch)
        with Forks({**os.environ, "OMP_NUM_THREADS": "3"}) as forks:
            forks.begin()
            (server,) = servers
            assert forks.start(["train"], folder / "log", append=False).wait(600) == 2
            assert servers == [server], "a run starts no second one"
            yield forks
        assert server.returncode == 0, "it ended by itself"


def test_a_run_has_its_own_session_and_what_it_needs(forks: Forks, tmp_path: Path) -> None:
    fork = forks.start(["check", "probe:Task"], tmp_path / "log", append=False)
    assert fork.wait(600) == 2, "the module holds no task"
    note, told, mistake = (tmp_path / "log").read_text().splitlines()
    assert note.startswith("note: imports ") and note.endswith("probe.py, which the config names")
    assert json.loads(told) == {
        "threads": "3",
        "parent": True,
        "own session": True,
        "imported": sys.platform == "linux",
        "frozen": sys.platform == "linux",
        "alone": True,
        "broken pipe": True,
        "input": "",
    }
    assert mistake.startswith("error: ") and "probe" in mistake


def test_a_log_is_written_anew_or_continued(forks: Forks, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier run\n")
    assert forks.start(["train"], log, append=True).wait(600) == 2
    first, second = log.read_text().splitlines()
    assert (first, second.partition(";")[0]) == ("of an earlier run", "error: config: missing")
    assert forks.start(["train"], log, append=False).wait(600) == 2
    assert log.read_text() == second + "\n"


def test_runs_end_in_any_order_and_a_signal_is_below_zero(forks: Forks, tmp_path: Path) -> None:
    held = forks.start(["train"], tmp_path / "held", append=False)
    os.kill(held.pid, signal.SIGSTOP)
    other = forks.start(["train"], tmp_path / "other", append=False)
    assert other.wait(600) == 2
    assert held.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        held.wait(0.01)
    os.killpg(held.pid, signal.SIGKILL)
    assert held.wait(600) == -signal.SIGKILL


ANEW = """
import torch
from colearn.runs.comparison import fork_server
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

    monkeypatch.setattr("colearn.runs.comparison.forks.subprocess.Popen", popen)
    with Forks({**os.environ, "OMP_NUM_THREADS": "3"}) as forks:
        fork = forks.start(["check", "probe:Task"], tmp_path / "log", append=False)
        assert fork.wait(600) == 2
    _, told, _ = (tmp_path / "log").read_text().splitlines()
    told = json.loads(told)
    assert told["imported"] is False
    assert (told["threads"], told["parent"], told["own session"]) == ("3", True, True)


def importing_from(folder: Path) -> dict[str, str]:
    """The environment in which a folder's modules come first; an empty entry would be the current
    folder, which holds a strange `json.py` here."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), before)))}


SLOW_TORCH = """
import pathlib, time
pathlib.Path("importing").touch()
time.sleep(600)
"""
PARENT = """
import os
from pathlib import Path
from colearn.runs.comparison.forks import Forks
with Forks(os.environ) as forks:
    forks.start(["train"], Path("log"), append=False)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is imported before a run")
def test_the_server_ends_with_its_parent_even_while_it_imports(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(SLOW_TORCH)
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", PARENT],
        cwd=tmp_path,
        env=importing_from(tmp_path),
        stderr=subprocess.PIPE,
    )
    until(lambda: (tmp_path / "importing").exists())
    parent.kill()
    _, told = parent.communicate(timeout=600)  # the server holds the same standard error
    assert told == b""


FOREIGN_TORCH = """
from types import SimpleNamespace
accelerator = SimpleNamespace(is_available=lambda: True)
"""


@pytest.mark.parametrize("change", [signal.SIG_BLOCK, signal.SIG_UNBLOCK])
def test_an_answer_that_nobody_reads_ends_the_server_without_a_message(
    tmp_path: Path, change: int
) -> None:
    (tmp_path / "torch.py").write_text(FOREIGN_TORCH)
    before = signal.pthread_sigmask(change, [signal.SIGPIPE])  # some service managers block it
    try:
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "colearn.runs.comparison.fork_server"],
            env=importing_from(tmp_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert server.stdin and server.stdout and server.stderr
    server.stdout.close()
    request = {"arguments": ["train"], "log": str(tmp_path / "log"), "append": False}
    server.stdin.write(json.dumps(request).encode() + b"\n")
    server.stdin.flush()
    assert server.wait(600) == 0
    assert server.stderr.read() == b""
    assert not (tmp_path / "log").exists(), "a run began although nobody was told of it"


def until(holds: Callable[[], bool], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_is_said_when_nothing_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Forks({}) as forks, pytest.raises(ColearnError, match=r"ended \(exit code 1\)"):
        forks.start(["train"], tmp_path / "log", append=False)


SAME_ID = """
import sys
for request in sys.stdin:
    print('{"started": 7}', flush=True)
    if '"first"' in request:
        print('{"ended": 7, "code": 1}', flush=True)
"""


def test_a_run_with_the_id_of_an_earlier_one_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda _, **given: start([sys.executable, "-c", SAME_ID], **given)
    )
    with Forks({}) as forks:
        assert forks.start(["first"], tmp_path / "log", append=False).wait(600) == 1
        assert forks.start(["second"], tmp_path / "log", append=False).poll() is None


def test_a_server_that_started_no_run_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = started_servers(monkeypatch)
    with Forks(dict(os.environ)) as forks:
        forks.begin()
    (server,) = servers
    assert server.returncode == -signal.SIGKILL


def test_imports_begin_before_the_runs_are_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = started_servers(monkeypatch)
    counts = []

    def planned(*_: Any) -> None:
        counts.append(len(servers))
        raise ColearnError("enough")

    monkeypatch.setattr("colearn.runs.comparison.api.make_plan", planned)
    with pytest.raises(ColearnError, match="enough"):
        compare(load_config("quickstart"), tmp_path / "out")
    assert counts == [1]


def test_the_fork_server_imports_no_report() -> None:
    program = "import colearn.runs.comparison.fork_server, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"


def started_servers(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The fork servers that this process starts from now on."""
    servers: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def popen(arguments: Any, *more: Any, **settings: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = real(arguments, *more, **settings)
        if arguments[-1] == "colearn.runs.comparison.fork_server":  # imports start processes, too
            servers.append(process)
        return process

    monkeypatch.setattr("colearn.runs.comparison.forks.subprocess.Popen", popen)
    return servers
