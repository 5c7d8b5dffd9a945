"""Starting a process inside a sandbox."""

from __future__ import annotations

import marshal
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ._bundle import LOADER
from ._bwrap import bwrap_command, filter_file
from ._filter import filter_program
from .limits import Limits
from .place import ENVIRONMENT, FOLDER, find_place

Mechanism = Literal["bwrap", "namespaces", "unsafe"]
LAUNCHER = Path(__file__).with_name("_namespaces.py")
Side = Literal["program", "checker", "script"]
"""Which of the modules that run inside: `_program`, `_checker`, `_script`."""


@dataclass(frozen=True, slots=True)
class Started:
    process: subprocess.Popen[bytes]
    """The outermost one: when it is killed, all inside end with it."""
    folder: tempfile.TemporaryDirectory[str] | None
    """Of an `unsafe` process, on disk."""


def start(side: Side, mechanism: Mechanism, limits: Limits, channel: int | None = None) -> Started:
    """Start one side of a run, which reads its bundle first.

    channel: a descriptor of this process that it inherits.
    """
    place = find_place()
    words = [place.interpreter, "-s", "-S", "-P", "-B", "-c", LOADER]
    words += ["-" if channel is None else str(channel), *_limit_words(limits, mechanism)]
    passed = [] if channel is None else [channel]
    code = None if mechanism == "unsafe" else filter_program(limits.processes)
    filter_fd = filter_file(code) if mechanism == "bwrap" else None
    folder = None
    if mechanism == "bwrap":
        command = bwrap_command(words, limits, place, filter_fd)
    elif mechanism == "namespaces":
        settings = {
            "read_only": place.read_only,
            "hidden": place.hidden,
            "links": place.links,
            "devices": place.devices,
            "folder": FOLDER,
            "file_bytes": limits.file_mb << 20,
            "filter": code,
            "environment": ENVIRONMENT,
        }
        launcher = [sys.executable, "-s", "-S", "-P", "-B", str(LAUNCHER)]
        command = [*launcher, marshal.dumps(settings).hex(), *map(str, passed), "--", *words]
    else:
        folder = tempfile.TemporaryDirectory(prefix="colearn-sandbox-", ignore_cleanup_errors=True)
        command = words
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if side == "program" else subprocess.PIPE,
            pass_fds=[*passed, *([] if filter_fd is None else [filter_fd])],
            cwd="/" if folder is None else folder.name,
            env=ENVIRONMENT if folder is None else _on_disk(folder.name),
            start_new_session=True,
        )
    finally:
        if filter_fd is not None:
            os.close(filter_fd)
    return Started(process, folder)


def _on_disk(folder: str) -> dict[str, str]:
    return ENVIRONMENT | {"HOME": folder, "TMPDIR": folder}


def _limit_words(limits: Limits, mechanism: Mechanism) -> Sequence[str]:
    give_up_root = os.geteuid() == 0 and mechanism != "unsafe"
    uid = str(40_000 + secrets.randbelow(20_000)) if give_up_root else "-"
    return (
        f"--memory={limits.memory_mb << 20}",
        f"--processes={limits.processes}",
        f"--cpu={limits.whole_cpu_seconds}",
        f"--file={limits.file_mb << 20}",
        f"--uid={uid}",
        # elsewhere the kernel would count all processes of the user
        f"--count={int(mechanism != 'unsafe')}",
    )
