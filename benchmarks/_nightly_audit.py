"""Looks up known vulnerabilities of what colearn depends on, by pip-audit: the tested versions
(constraints.txt) and the lowest ones that pyproject.toml allows."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

from _nightly_environments import ROOT, CannotRun, Environments
from _nightly_results import Result

AUDIT = "audit"
"""The row's name, beside the markers."""


def audit(environments: Environments, commit: str) -> list[Result]:
    """One result for each package and version.

    Errors: CannotRun where the data base of vulnerabilities cannot be asked.
    """
    python = environments.make(AUDIT, ("pip-audit",))
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        lowest = Path(scratch) / "lowest.txt"
        lowest.write_text("\n".join(lowest_versions((ROOT / "pyproject.toml").read_text())))
        for name, path in (("tested", ROOT / "constraints.txt"), ("lowest", lowest)):
            command = [str(python), "-m", "pip_audit", "--no-deps", "--disable-pip"]
            command += ["--progress-spinner", "off", "--format", "json", "-r", str(path)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode not in (0, 1) or not done.stdout:
                last = (done.stderr.strip() or "no output").splitlines()[-1]
                raise CannotRun(f"pip-audit: {last[:200]}")
            found += read_audit(name, commit, done.stdout)
    return found


def lowest_versions(project: str) -> list[str]:
    """The lowest versions that pyproject.toml allows, as pins; what has no bound is left out."""
    settings = tomllib.loads(project)
    requirements = [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]
    for extra in settings["project"]["optional-dependencies"].values():
        requirements += extra
    bounds = (re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?>=([\w.]+)", line) for line in requirements)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


def read_audit(name: str, commit: str, report: str) -> list[Result]:
    """The results in pip-audit's JSON: a package fails with a known vulnerability, and is skipped
    if the data base does not know it.

    Errors: CannotRun if it knows none of the packages.
    """
    found = []
    for package in json.loads(report)["dependencies"]:
        outcome, reason, named = "passed", "", f"{name}: {package['name']}"
        if "skip_reason" in package:
            outcome, reason = "skipped", f"{name}: not in the data base of vulnerabilities"
        elif package["vulns"]:
            ids = ", ".join(one["id"] for one in package["vulns"])
            outcome, named = "failed", f"{named} {package['version']}: {ids}"
        found.append(Result(AUDIT, named, outcome, commit, reason))
    if all(result.outcome == "skipped" for result in found):
        raise CannotRun(f"pip-audit's data base knows none of {len(found)} packages")
    return found
