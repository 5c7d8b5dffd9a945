"""Faults planted by hand, one at a time: which fast test of their area falls.

    python benchmarks/planted.py [NAME ...]

Each fault of `planted.toml` is one change of one place in a copy of the repository. A fault that no
test notices is a hole in the tests. Random small changes of the core are `mutations.py`'s.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """A change of one file, and the tests of its area, below tests/unit."""

    name: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = tuple(
    Fault(**fault)
    for fault in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["fault"]
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the faults' names; all by default")
    chosen = parser.parse_args().names
    print("| fault | test that falls |\n|---|---|")
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*"))
        for fault in FAULTS:
            if chosen and not any(name in fault.name for name in chosen):
                continue
            test = falls(fault, copy)
            missed += test is None
            print(f"| {fault.name} | {f'`{test}`' if test else 'none'} |", flush=True)
    sys.exit(int(missed > 0))


def falls(fault: Fault, copy: Path) -> str | None:
    """The first fast test that falls with the fault; None if none does."""
    path = copy / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} does not have the text once")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "fast", "-p", "no:cacheprovider"]
    tests = f"tests/unit/{fault.tests}"
    ended = subprocess.run(
        [*command, tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    path.write_text(text, encoding="utf-8")
    fallen = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    if fallen is None and ended.returncode != 0:
        raise SystemExit(f"{fault.name}: pytest ended with {ended.returncode}\n{ended.stdout}")
    return None if fallen is None else fallen[1]


if __name__ == "__main__":
    main()
