"""Shell commands on a task's files: a pure function of the files and the command."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from colearn.programs.sandbox import Limits, run_program

from .folder import FILE_MB, HarborTask

PROCESSES = 16
_GRACE = 30.0
"""Seconds for the start of the sandbox, and for unpacking and packing the files."""
_VARIABLES = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True, slots=True)
class Graded:
    """The verifier's result: a reward, or the reason why there is none."""

    reward: float | None
    reason: str = ""


def run_command(task: HarborTask, files: str, command: str, seconds: float) -> tuple[str, str]:
    """What an agent's command wrote, and the files after it. If the sandbox ends before the command
    does, because a limit was exceeded, the files stay and the text states the reason."""
    work = {"tests": "", "variables": task.variables, "command": command, "seconds": seconds}
    done, reason = _run(task, files, work)
    return (reason, files) if done is None else (done["text"], done["files"])


def verify(task: HarborTask, files: str) -> Graded:
    """Runs `tests/test.sh` on the files."""
    work = {
        "tests": task.tests,
        "variables": task.verifier_variables,
        "command": "chmod +x /tests/test.sh && /tests/test.sh",
        "seconds": task.verifier_seconds,
    }
    done, reason = _run(task, files, work)
    return Graded(None, reason) if done is None else _reward(done["rewards"])


def _run(task: HarborTask, files: str, work: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The result of `_inside.py`; None and the reason if the sandbox ended early."""
    variables = {**_VARIABLES, **work["variables"]}
    work |= {"files": files, "folder": task.folder, "variables": variables}
    limits = Limits(
        seconds=work["seconds"] + _GRACE,
        memory_mb=task.memory_mb,
        processes=PROCESSES,
        file_mb=FILE_MB,
        output_kb=FILE_MB * 2048,
    )
    output = run_program(_inside(), json.dumps(work), limits=limits, commands=True)
    if output.error is not None:
        return None, f"[the sandbox ended: {output.message}]"
    return json.loads(output.text.rstrip().rpartition("\n")[2]), ""


@cache
def _inside() -> str:
    return Path(__file__).with_name("_inside.py").read_text("utf-8")


def _reward(texts: Mapping[str, str]) -> Graded:
    """The number `reward` of reward.json; without it, the number in reward.txt."""
    try:
        rewards = json.loads(texts.get("reward.json", "{}"))
    except (ValueError, RecursionError):
        rewards = None
    if not isinstance(rewards, dict):
        return Graded(None, "reward.json has no JSON object")
    if "reward" in rewards:
        return _finite("reward.json", rewards["reward"])
    if "reward.txt" in texts:
        return _finite("reward.txt", texts["reward.txt"])
    return Graded(None, "tests/test.sh wrote no reward to /logs/verifier/reward.txt or reward.json")


def _finite(name: str, value: Any) -> Graded:
    try:
        reward = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, OverflowError, TypeError):
        reward = math.nan
    return Graded(reward) if math.isfinite(reward) else Graded(None, f"{name} has no finite number")
