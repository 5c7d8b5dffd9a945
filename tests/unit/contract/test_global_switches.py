"""Global switches that a user's code leaves changed: put back, or named in one note."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from colearn.config import build_task, load_config
from colearn.contract.checked_task import CheckedTask, calling
from colearn.contract.global_switches import SwitchState, checked, guarded
from colearn.errors import TaskError
from colearn.registry.own_code import imported
from colearn.tasks.dpomdp import TextDecPOMDP
from colearn.text.notes import note_once

Read = Callable[[], Any]


def other_folder() -> None:
    os.chdir("other")


KEPT_OPEN = ExitStack()
"""Contexts that the code leaves entered."""
CALLS: dict[str, tuple[Callable[[], object], Read]] = {
    "torch.inference_mode": (
        lambda: KEPT_OPEN.enter_context(torch.inference_mode()),
        torch.is_inference_mode_enabled,
    ),
    "torch.set_grad_enabled": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "torch.set_autocast_enabled": (
        lambda: torch.set_autocast_enabled("cpu", True),
        lambda: torch.is_autocast_enabled("cpu"),
    ),
    "torch.set_default_dtype": (
        lambda: torch.set_default_dtype(torch.float64),
        torch.get_default_dtype,
    ),
    "torch.use_deterministic_algorithms": (
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        torch.is_deterministic_algorithms_warn_only_enabled,
    ),
    "torch.set_float32_matmul_precision": (
        lambda: torch.set_float32_matmul_precision("medium"),
        torch.get_float32_matmul_precision,
    ),
    "warnings.filters": (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters)),
    "the current folder": (other_folder, os.getcwd),
    "the handler of SIGINT": (
        lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGINT),
    ),
    "the handler of SIGCHLD": (
        lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGCHLD),
    ),
    "the handler of SIGPIPE": (
        lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
        lambda: signal.getsignal(signal.SIGPIPE),
    ),
    "sys.stdout": (lambda: setattr(sys, "stdout", io.StringIO()), lambda: sys.stdout),
    "sys.stderr": (lambda: setattr(sys, "stderr", io.StringIO()), lambda: sys.stderr),
}


SLOW: dict[str, tuple[Callable[[], object], Read]] = {
    "torch.set_num_threads": (
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
        torch.get_num_threads,
    ),
    "torch.set_default_device": (
        lambda: torch.set_default_device("meta"),
        torch.get_default_device,
    ),
    "torch.backends.cudnn.deterministic": (
        lambda: setattr(torch.backends.cudnn, "deterministic", True),
        lambda: torch.backends.cudnn.deterministic,
    ),
    "torch.backends.mkldnn.enabled": (
        lambda: setattr(torch.backends.mkldnn, "enabled", False),
        lambda: torch.backends.mkldnn.enabled,
    ),
    "torch.backends.cuda.enable_math_sdp": (
        lambda: torch.backends.cuda.enable_math_sdp(False),
        torch.backends.cuda.math_sdp_enabled,
    ),
    "numpy.seterr": (lambda: np.seterr(divide="raise"), np.geterr),
    "numpy.set_printoptions": (lambda: np.set_printoptions(precision=1), np.get_printoptions),
}


@pytest.fixture(autouse=True)
def switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As before after a test that fails, and every note is new."""
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    note_once.cache_clear()
    threads = torch.get_num_threads()
    # a process in the background of a shell ignores SIGINT
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    streams = sys.stdout, sys.stderr
    with warnings.catch_warnings(), np.errstate(), torch.random.fork_rng(devices=[]):
        yield
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    torch.backends.cudnn.deterministic = False
    torch.backends.mkldnn.enabled = True
    torch.backends.cuda.enable_math_sdp(True)
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdout, sys.stderr = streams


@pytest.mark.parametrize("name", CALLS)
def test_a_switch_that_a_call_leaves_changed_is_put_back_and_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, read = CALLS[name]
    before = read()
    for _ in range(2):
        with calling("task.reward: 'mine:paid'"):
            change()
            assert read() != before
        assert read() == before
    told = f"note: task.reward: 'mine:paid' changed {name} for the whole process; put back\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("name", [*CALLS, *SLOW])
def test_every_switch_is_put_back_once_per_iteration(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, read = (CALLS | SLOW)[name]
    before, switches = read(), SwitchState()
    change()
    switches.check("an own part")
    assert read() == before
    told = f"note: an own part changed {name} for the whole process; put back\n"
    assert capsys.readouterr().err == told


class Switching(TextDecPOMDP):
    def __init__(self) -> None:
        super().__init__()
        np.seterr(divide="raise")

    def items(self, split: str) -> tuple[Any, ...]:
        np.seterr(over="raise")
        return tuple(super().items(split))


def test_a_task_s_constructor_and_its_items_leave_no_switch_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = np.geterr()
    config = {"task": f"{__name__}:Switching", "algorithm": "magrpo", "models": {}}
    task = build_task(load_config(config))
    assert np.geterr() == before
    CheckedTask(task).items("train")
    assert np.geterr() == before
    told = capsys.readouterr().err
    assert "note: task.__init__ changed numpy.seterr" in told
    assert "note: task.items changed numpy.seterr" in told


def test_a_call_that_raises_leaves_no_switch_changed() -> None:
    with pytest.raises(TaskError, match="ValueError"), calling("task.step:"):
        torch.set_grad_enabled(False)
        raise ValueError("no")
    assert torch.is_grad_enabled()


def test_a_warning_is_raised_as_before_after_its_filter_is_put_back() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with guarded("task.step"):
            warnings.simplefilter("error")
        warnings.warn("still one", stacklevel=1)
    assert [str(one.message) for one in caught] == ["still one"]


def test_a_switch_that_a_call_changes_for_its_own_duration_is_left_to_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow() -> None:
        with guarded("slow"):
            os.chdir("other")
            inside.set()
            leave.wait(600)
            seen.append(Path.cwd().name)
            os.chdir("..")

    seen: list[str] = []
    before = os.getcwd()
    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait(600)
    with guarded("quick"):
        pass
    leave.set()
    thread.join()
    assert (seen, os.getcwd()) == (["other"], before)
    assert capsys.readouterr().err == ""


def test_a_changed_seed_is_named_and_not_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded("task.step"):
        torch.manual_seed(12345)
        drawn = torch.rand(1)
    with guarded("task.step"):
        assert torch.rand(1) != drawn
    assert "task.step changed torch.manual_seed" in capsys.readouterr().err


def test_a_changed_environment_variable_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("MADE", "1")
    with checked("the task"):
        os.environ["MADE"] = "secret"
        del os.environ["KEPT"]
    assert capsys.readouterr().err == ("note: the task changed environment variables: KEPT, MADE\n")
    assert os.environ["MADE"] == "secret"


def test_a_module_leaves_no_switch_changed_but_keeps_the_filters_of_single_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "switching.py").write_text(
        "import torch, warnings\n"
        "torch.set_grad_enabled(False)\n"
        "warnings.simplefilter('error')\n"
        "warnings.filterwarnings('ignore', 'one of a library')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = list(warnings.filters)
    imported("switching")
    del sys.modules["switching"]
    assert torch.is_grad_enabled()
    assert next(one for one in warnings.filters if one not in before)[0] == "ignore"
    assert len(warnings.filters) == len(before) + 1
    assert "importing 'switching' changed torch.set_grad_enabled" in capsys.readouterr().err


def test_a_generator_may_change_the_number_of_threads_meanwhile() -> None:
    switches, changed = SwitchState(generating=True), torch.get_num_threads() + 1
    torch.set_num_threads(changed)
    switches.check("the task")
    assert torch.get_num_threads() == changed


def test_code_that_changes_nothing_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded("task.step"), checked("the task"), torch.no_grad(), np.errstate(all="raise"):
        pass
    assert capsys.readouterr().err == ""
