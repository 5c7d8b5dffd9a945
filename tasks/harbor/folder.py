"""Reads a folder of Harbor's task format."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from colearn.errors import TaskError, reason_of
from colearn.programs.files.regular import read_regular

from ._inside import pack
from .image import Refused, placed, read_image

_KNOWN = {
    *("allow_internet", "allowed_hosts", "network_mode", "build_timeout_sec", "env", "workdir"),
    *("cpus", "memory_mb", "storage_mb"),
}
"""Keys of `[environment]` that the sandbox obeys, or whose limits are those of the sandbox."""
_KNOWN_OF_VERIFIER = {"timeout_sec", "env", "user", "network_mode", "allowed_hosts"}
_INSTALLERS = ("apt", "apt-get", "apk", "pip", "pip3", "uv", "uvx", "npm", "npx", "curl", "wget")
FILE_MB = 16
"""Size of the sandbox's folders in MB, which are in memory."""
VERIFIER_SECONDS, MEMORY_MB = 600.0, 2048
"""Defaults of `verifier.timeout_sec` and `environment.memory_mb`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """A task folder. `files` and `tests` are archives that only the sandbox unpacks."""

    name: str
    instruction: str
    files: str = field(repr=False)
    tests: str = field(repr=False)
    folder: str
    """The working folder of commands and verifier."""
    variables: Mapping[str, str]
    verifier_variables: Mapping[str, str]
    verifier_seconds: float
    memory_mb: int

    def __str__(self) -> str:
        return self.name


def read_tasks(path: Path) -> list[HarborTask]:
    """The tasks in the folders of `path`, or in `path` itself, by name.

    Errors: TaskError naming a task that cannot run in the sandbox, the reason and the remedy.
    """
    folders = [path] if (path / "task.toml").is_file() else sorted(path.glob("*/"))
    folders = [folder for folder in folders if (folder / "task.toml").is_file()]
    if not folders:
        raise TaskError(
            f"task.path: {path} has no folder with a task.toml; name a folder of Harbor tasks"
        )
    return [_read(folder) for folder in folders]


def _read(folder: Path) -> HarborTask:
    try:
        config = tomllib.loads(read_regular(folder / "task.toml").decode())
        instruction = read_regular(folder / "instruction.md").decode().strip()
        script = read_regular(folder / "tests" / "test.sh").decode()
        environment, verifier = _table(config, "environment"), _table(config, "verifier")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _check(config, environment, verifier, script, size)
        image = read_image(folder / "environment")
        variables = image.variables | _variables(environment)
        return HarborTask(
            name=folder.name,
            instruction=instruction,
            files=image.files,
            tests=pack(placed(folder / "tests", ".")),
            folder=str(environment.get("workdir", image.folder)),
            variables=variables,
            verifier_variables=variables | _variables(verifier),
            verifier_seconds=float(verifier.get("timeout_sec", VERIFIER_SECONDS)),
            memory_mb=max(MEMORY_MB, int(environment.get("memory_mb", 0))),
        )
    except Refused as error:
        raise TaskError(
            f"task.path: {folder.name} {error}; play it with the environment `harbor` of the task "
            "`verifiers`, which has containers, or leave it out"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise TaskError(
            f"task.path: {folder.name} is no Harbor task ({reason_of(error)}); give it task.toml, "
            "instruction.md, environment/Dockerfile and tests/test.sh"
        ) from None


def _check(
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    verifier: Mapping[str, Any],
    script: str,
    size: int,
) -> None:
    """Errors: Refused for whatever needs more than the sandbox."""
    if size >= FILE_MB << 20:
        raise Refused(f"has {FILE_MB} MB of files or more")
    if config.get("steps"):
        raise Refused("has several steps, which are not played")
    for name, table, known in (
        ("environment", environment, _KNOWN),
        ("verifier", verifier, _KNOWN_OF_VERIFIER),
    ):
        for key, value in table.items():
            plain = value in ("linux", "shared") and key in ("os", "environment_mode")
            if value and key not in known and not plain:
                raise Refused(f"needs a container ({name}.{key})")
    for number, line in enumerate(script.splitlines(), 1):
        words = line.partition("#")[0].replace(";", " ").replace("&", " ").replace("|", " ").split()
        for word in words:
            if word in _INSTALLERS:
                raise Refused(f"needs a network (line {number} of tests/test.sh runs {word})")


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = config.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name} in task.toml is no table")
    return table


def _variables(table: Mapping[str, Any]) -> dict[str, str]:
    variables = {name: str(value) for name, value in _table(table, "env").items()}
    for name, value in variables.items():
        if "${" in value:
            raise Refused(f"needs the variable {name} of this machine")
    return variables
