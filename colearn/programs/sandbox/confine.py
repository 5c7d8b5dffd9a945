"""Confines a program: starts its process inside a sandbox."""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Literal

from ._bundle import LOADER
from ._bwrap import bwrap_command, filter_file
from ._filter import filter_program
from .limits import Limits
from .place import ENVIRONMENT, find_commands, find_place
from .process import Process

Mechanism = Literal["bwrap", "unsafe"]
Side = Literal["program", "checker", "script"]
"""The module that runs inside: `_program`, `_checker` or `_script`."""


def start(
    side: Side,
    mechanism: Mechanism,
    limits: Limits,
    channel: Sequence[int] = (),
    *,
    commands: bool = False,
) -> Process:
    """Start one side of a run: program, checker or script. The process first reads its bundle from
    standard input.

    channel: descriptors that the process inherits, one to read and one to write.
    commands: whether the machine's commands are visible, in a writable root folder.
    """
    place = find_commands() if commands else find_place()
    numbers = ",".join(map(str, channel)) or "-"
    words = [place.interpreter, "-s", "-S", "-P", "-B", "-c", LOADER]
    limit_words = _limit_words(limits, mechanism)
    code = None if mechanism == "unsafe" else filter_program(limits.processes)
    command = [*words, numbers, *limit_words]
    filter_fd, folder, environment = None, None, ENVIRONMENT
    if mechanism == "bwrap":
        filter_fd = filter_file(code)
        command = bwrap_command(command, limits, place, filter_fd)
    else:
        folder = tempfile.TemporaryDirectory(prefix="colearn-sandbox-", ignore_cleanup_errors=True)
        environment = ENVIRONMENT | {"HOME": folder.name, "TMPDIR": folder.name}
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if side == "program" else subprocess.PIPE,
            pass_fds=[*channel, *([] if filter_fd is None else [filter_fd])],
            cwd="/" if folder is None else folder.name,
            env=environment,
            start_new_session=True,
        )
    finally:
        if filter_fd is not None:
            os.close(filter_fd)
    return Process(child, folder, limits.files if mechanism == "bwrap" else None, place.folder)


def _limit_words(limits: Limits, mechanism: Mechanism) -> Sequence[str]:
    give_up_root = os.geteuid() == 0 and mechanism != "unsafe"
    uid = str(40_000 + secrets.randbelow(20_000)) if give_up_root else "-"
    return (
        f"--memory={limits.memory_mb << 20}",
        f"--processes={limits.processes}",
        f"--cpu={math.ceil(limits.seconds)}",
        f"--file={limits.file_mb << 20}",
        f"--uid={uid}",
        # without isolation the kernel would count all processes of the user
        f"--count={int(mechanism != 'unsafe')}",
    )
