"""Runs the tests of every marker, each in an environment of its own, and writes one row for each.

    .ci/nightly                                  all markers
    .ci/nightly --markers slow,deepspeed         some of them
    .ci/nightly --keep ~/.cache/colearn-nightly  environments are made once and kept
    .ci/nightly --results FILE --files all       one file of tests after the other
    .ci/nightly --results FILE --failed          again what failed
    .ci/nightly --results FILE --markers ""      the table alone
    .ci/nightly --markers audit                  known vulnerabilities of dependencies

A marker that this machine cannot run gets a row with the reason. With `--results` the newest result
of each test is kept in FILE, with its commit, and the table shows all of them, so that a night can
be run in parts. Needs the standard library alone. The exit status is 0 if nothing that is shown
has failed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from _nightly_audit import AUDIT, audit
from _nightly_environments import ROOT, CannotRun, Environment, Environments, run
from _nightly_results import Result, Results, page, read_report

TABLE = ROOT / "benchmarks" / "results" / "nightly.md"
PROGRAMS = {"bwrap": "bubblewrap", "chromium": "chromium"}
"""Programs without which tests skip, and their packages in Debian."""
VARIABLES = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""With it, each process that a test starts would compile the library again."""
WITHOUT_TESTS = 5
"""Pytest's exit status where all modules were skipped."""


class Runner:
    """Runs pytest on a marker's tests, in its environment, and keeps what came out."""

    def __init__(self, results: Results, processes: int, minutes: float) -> None:
        self.results, self.minutes = results, minutes
        self.workers = ("-n", str(processes)) if processes > 1 else ("-p", "no:xdist")
        self.commit = run("git", "rev-parse", "--short", "HEAD").strip()

    def by_file(self, marker: str, environment: Environment) -> None:
        """One file of tests after the other, so that what stops a run costs that file."""
        files = self.files(marker, environment)
        gone = {result.test.split("::")[0] for result in self.results.of(marker)} - set(files)
        if files and gone:
            self.results.replace(marker, sorted(gone), ())
        for file in files:
            self.test(marker, environment, (file,))

    def failed(self, marker: str, environment: Environment) -> None:
        """What failed, again."""
        tests = [result.test for result in self.results.of(marker) if result.outcome == "failed"]
        if tests:
            self.test(marker, environment, tests)

    def files(self, marker: str, environment: Environment) -> list[str]:
        """The files in which a marker has tests."""
        command = self.pytest(marker, environment, "--collect-only", "-p", "no:xdist")
        listed = subprocess.run(
            command, cwd=ROOT, env=self.variables(environment), capture_output=True, text=True
        )
        if listed.returncode not in (0, WITHOUT_TESTS):
            self.keep(marker, (), f"collection ended with {listed.returncode}")
            print(listed.stdout[-3000:], flush=True)
            return []
        tests = (line for line in listed.stdout.splitlines() if "::" in line)
        return list(dict.fromkeys(line.split("::")[0] for line in tests))

    def test(self, marker: str, environment: Environment, paths: Sequence[str]) -> None:
        """Runs the tests of a marker that stand in `paths`, or all."""
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.xml"
            kind = (f"--junitxml={report}", "--durations=5")
            command = self.pytest(marker, environment, *self.workers, *kind, *paths)
            variables = {**self.variables(environment), "TMPDIR": scratch}
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=variables, timeout=60 * self.minutes
                ).returncode
            except subprocess.TimeoutExpired:
                self.keep(marker, paths, f"stopped after {self.minutes:g} minutes")
                return
            if done not in (0, 1, WITHOUT_TESTS) or not report.exists():
                self.keep(marker, paths, f"pytest ended with {done}")
                return
            new = read_report(marker, self.commit, report.read_text())
            self.results.replace(marker, paths, new)

    def keep(self, marker: str, paths: Sequence[str], failure: str) -> None:
        """Keeps that a run of pytest failed as a whole."""
        names = [f"{path}::{failure}" for path in paths] or [failure]
        new = [Result(marker, name, "failed", self.commit) for name in names]
        self.results.replace(marker, paths, new)

    def pytest(self, marker: str, environment: Environment, *arguments: str) -> list[str]:
        """The command: `fast` is the tier of that name, `gate` what no marker deselects."""
        chosen = () if marker == "gate" else ("-m", marker)
        command = (str(environment.python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
        return [*command, *chosen, *arguments]

    def variables(self, environment: Environment) -> dict[str, str]:
        """Of the process."""
        kept = {name: value for name, value in os.environ.items() if name != UNCOMPILED}
        return {**kept, **VARIABLES, **environment.variables}


def markers() -> list[str]:
    """The markers that pyproject.toml declares."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = settings["tool"]["pytest"]["ini_options"]["markers"]
    return [line.split(":")[0] for line in declared if not line.startswith("fast:")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markers", help="names, separated by commas; `gate` is the default run")
    parser.add_argument("--keep", type=Path, help="folder in which environments are kept")
    parser.add_argument("--table", type=Path, default=TABLE, help="where the table is written")
    parser.add_argument("--results", type=Path, help="file in which results are kept")
    parser.add_argument("--files", help="`all` or names: one file of tests after the other")
    parser.add_argument("--failed", action="store_true", help="only what failed before")
    parser.add_argument("--processes", type=int, default=2, help="of pytest")
    parser.add_argument("--minutes", type=float, default=300, help="limit of one run of pytest")
    options = parser.parse_args()
    every = ["gate", *markers(), AUDIT]
    chosen = every if options.markers is None else [m for m in options.markers.split(",") if m]
    missing = [package for name, package in PROGRAMS.items() if shutil.which(name) is None]
    if missing:
        print(f"tests will skip without: apt-get install {' '.join(missing)}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        environments = Environments((options.keep or Path(scratch)).absolute())
        builders: dict[str, Callable[[], Environment]] = {
            "deepspeed": environments.extras,
            "ray": environments.extras,
            "quantized": environments.extras,
            "vllm": environments.vllm,
            "gpu": environments.gpu,
            "real_model": environments.real_model,
            "network": environments.network,
            "notebooks": environments.notebooks,
            "frameworks": environments.frameworks,
        }
        results = Results(options.results or Path(scratch) / "results.jsonl")
        runner = Runner(results, options.processes, options.minutes)
        for marker in chosen:
            print(f"== {marker}", flush=True)
            try:
                if marker == AUDIT:
                    results.replace(marker, (), audit(environments, runner.commit))
                    continue
                environment = builders.get(marker, environments.dev)()
            except CannotRun as error:
                reason = Result(marker, "", "cannot run", runner.commit, str(error))
                results.replace(marker, (), [reason])
            else:
                if options.failed:
                    runner.failed(marker, environment)
                elif options.files == "all":
                    runner.by_file(marker, environment)
                else:
                    for file in options.files.split(",") if options.files else [None]:
                        runner.test(marker, environment, [file] if file else [])
    day = datetime.date.today().isoformat()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    shown = dict.fromkeys([*every, *chosen]) if options.results else chosen
    options.table.write_text(page(results, list(shown), day, machine))
    print(options.table.read_text())
    return int(any(result.outcome == "failed" for result in results.results))


if __name__ == "__main__":
    sys.exit(main())
