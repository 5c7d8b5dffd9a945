"""Digests of the installed packages that play the episodes of a shipped task."""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .code_files import code_files, package_files
from .lookup import KINDS

_PATIENCE = 60.0
"""Maximum number of seconds in which another Python finds the packages."""
_FIND = """
import importlib.metadata, importlib.util, json, os, sys
sys.path.insert(0, os.getcwd())
found = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:
        try:
            found[name] = [spec.origin, importlib.metadata.version(name)]
        except importlib.metadata.PackageNotFoundError:
            found[name] = [spec.origin, ""]
print(json.dumps(found))
"""


def package_digests(task: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns the version and the digest of each installed package that plays a task's episodes, by
    the name of its module; packages that are not found are left out. Of a task with the setting
    `python`, they are those of that Python."""
    modules = importlib.import_module(KINDS["tasks"].package).PACKAGES.get(task, ())
    named = [_module(name, settings) for name in modules]
    names = [name for name in named if name.replace(".", "_").isidentifier()]
    if names and isinstance(python := settings.get("python"), str):
        return _elsewhere(python, names)
    found = {name: (_version(name), code_files(name)) for name in names}
    return {name: _digest(*package) for name, package in found.items() if package[1]}


def _module(name: str, settings: Mapping[str, Any]) -> str:
    """The module's name; `{env}` is the module of the package that this setting names by an id such
    as `owner/reverse-text`."""
    if not name.startswith("{"):
        return name
    return str(settings.get(name.strip("{}"), "")).rpartition("/")[2].replace("-", "_")


def _version(module: str) -> str:
    try:
        return version(module)
    except PackageNotFoundError:
        return ""


def _elsewhere(python: str, names: list[str]) -> dict[str, str]:
    """The packages of another Python; none if it cannot be run, as the task will say."""
    try:
        command = [python, "-c", _FIND, *names]
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    packages = {name: found[name] for name in names if name in found}
    return {
        name: _digest(number, package_files(Path(origin)))
        for name, (origin, number) in packages.items()
    }


def _digest(number: str, files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, file in files.items():
        digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return f"{number} {digest.hexdigest()}".strip()
