"""Makes the shared parts of the tests (`helpers/`) importable, keeps torch to one thread, and says
which tests are the fast tier: `pytest -m fast -n 2`, within a minute on two cores."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "helpers"))

import deprecations  # noqa: E402 - a module of helpers/

deprecations.install()
# a process runs one command; here building the commands took longer than most cases of them
typer.main.get_command = functools.cache(typer.main.get_command)
FAST = {HERE / "integration" / f"test_{name}.py" for name in ("learning", "updater")}
"""Beside the unit tests: what an update does, by hand, and that teams learn by it."""
AROUND = {
    HERE / "unit" / folder
    for folder in (
        *("benchmarks", "cli", "comparison", "estimate", "pictures", "play", "qa"),
        *("report", "rewards", "tasks", "tools", "workflow"),
    )
}
"""Not in the fast tier: the tests of what stands around the core."""
NOT_FAST = {
    f"test_{name}.py"
    for name in (
        *("adapted_experts", "adapter_folders", "adapter_layers", "base_revisions"),
        *("content_bytes", "damaged_models", "flex_attention"),
        *("hostile_inputs", "masking", "paper_settings", "prefix_space", "reasoning", "registry"),
        *("remote_agent", "result_html", "serve_text", "server_link", "server_process"),
        *("tabular_evaluate", "tabular_search"),
    )
}
"""Tests of the core that start processes, load many models, search, or try hundreds of texts."""


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's handler of SIGINT, which processes of a shell's background jobs lack; it must be
    there again after the test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers take the tests of a file together, so that what a file sets up (servers, warm
    starts) is set up once; who ends first takes from the others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def no_figures() -> Iterator[None]:
    """See `undrawn`."""
    from undrawn import undrawn  # imports matplotlib

    with undrawn():
        yield


def _fast(path: Path) -> bool:
    if not path.is_relative_to(HERE / "unit"):
        return path in FAST
    return path.name not in NOT_FAST and AROUND.isdisjoint(path.parents)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast tier does not import the files that have no part in it."""
    other = collection_path.suffix == ".py" and not _fast(collection_path)
    return True if config.getoption("markexpr") == "fast" and other else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _fast(item.path) and item.get_closest_marker("slow") is None:
            item.add_marker("fast")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting keeps all that it makes: a search for garbage finds none and takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Undoes what a long session has and a user's process has not.

    torchrl makes `spawn` the start method of the whole process unless one is set by name, wherever
    a test imports it: each worker would import everything anew. And a million objects of tests and
    libraries live to the end: frozen, they cost no second whenever a run collects garbage.
    The process that deals tests to workers collects none, and needs no torch.
    """
    import torch

    torch.set_num_threads(1)
    multiprocessing.set_start_method(multiprocessing.get_all_start_methods()[0], force=True)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_calls_are_current() -> None:
    """Warnings that a library's compiled code attributes to its caller: see `deprecations`."""
    for kind in deprecations.KINDS:
        warnings.filterwarnings("error", category=kind, module=r"(colearn|algorithms|tasks)\b")


@pytest.fixture(autouse=True)
def _no_gateway_outlives_its_test() -> Iterator[None]:
    """Its workers would be started again and again, and warn, while other tests run."""
    yield
    programs = sys.modules.get("tests.helpers.gateway_programs")
    while programs is not None and programs.OPENED:
        programs.OPENED.pop().close()
    assert not [thread for thread in threading.enumerate() if thread.name == "gateway"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Counts the code blocks of the documentation that ran, and the others by what they lack."""
    done: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "blocks" and report.when == "call":
                done.update(value)
    if done:
        whole, ran = done.total(), done.pop("ran", 0)
        others = ", ".join(f"{count} {lack}" for lack, count in done.most_common() if count)
        terminalreporter.write_line(f"documentation: {ran} of {whole} blocks ran; {others}")
