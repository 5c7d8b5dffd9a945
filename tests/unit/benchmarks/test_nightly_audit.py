"""Known vulnerabilities of dependencies: what the nightly run makes of an audit, and the bounds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from _nightly_audit import lowest_versions, read_audit
from _nightly_environments import ROOT, CannotRun

CLEAN = {"name": "numpy", "version": "2.4.0", "vulns": []}
KNOWN = {"name": "h11", "version": "0.14.0", "vulns": [{"id": "PYSEC-1"}, {"id": "GHSA-2"}]}
ABSENT = {"name": "torch", "skip_reason": "Dependency not found on PyPI: torch (2.13.0+cpu)"}


def audited(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_a_package_with_a_known_vulnerability_is_failed_and_an_unknown_one_is_skipped() -> None:
    found = read_audit("lowest", "abc123", audited(CLEAN, KNOWN, ABSENT))
    assert [(result.test, result.outcome, result.reason) for result in found] == [
        ("lowest: numpy", "passed", ""),
        ("lowest: h11 0.14.0: PYSEC-1, GHSA-2", "failed", ""),
        ("lowest: torch", "skipped", "lowest: not in the data base of vulnerabilities"),
    ]


def test_an_audit_in_which_nothing_was_looked_up_has_not_passed() -> None:
    with pytest.raises(CannotRun, match="knows none of 2 packages"):
        read_audit("tested", "abc123", audited(ABSENT, ABSENT))


def test_the_lowest_versions_are_those_that_the_project_allows() -> None:
    project = """
[build-system]
requires = ["setuptools>=78.1.1"]
[project]
dependencies = ["numpy>=1.26", "pyyaml>=6"]
[project.optional-dependencies]
math = ["math-verify[antlr4_13_2]>=0.8", "ninja"]
"""
    assert lowest_versions(project) == [
        "math-verify==0.8",
        "numpy==1.26",
        "pyyaml==6",
        "setuptools==78.1.1",
    ]


PATCHED = {
    "filelock": (3, 20, 3),
    "h11": (0, 16),
    "jinja2": (3, 1, 6),
    "ray": (2, 54),
    "setuptools": (78, 1, 1),
    "starlette": (1, 0, 1),
}
"""First versions without CVE-2025-68146 and CVE-2026-22701, CVE-2025-43859, CVE-2025-27516,
CVE-2025-62593 and CVE-2026-27482, CVE-2025-47273, CVE-2025-62727 and CVE-2026-48710."""


def test_no_lower_bound_allows_a_version_with_a_known_vulnerability() -> None:
    pins = lowest_versions((ROOT / "pyproject.toml").read_text())
    lowest = [pin.split("==") for pin in pins]
    allowed = {
        name: tuple(map(int, version.split("."))) for name, version in lowest if name in PATCHED
    }
    assert {name for name in PATCHED if allowed[name] < PATCHED[name]} == set()
