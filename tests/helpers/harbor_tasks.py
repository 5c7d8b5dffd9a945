"""Small tasks in Harbor's folder format."""

from __future__ import annotations

from pathlib import Path

DOCKERFILE = "FROM ubuntu:24.04\nWORKDIR /app\nCOPY . .\n"
TEST = """#!/bin/bash
if [ "$(cat answer)" = "$(cat /tests/expected)" ]; then echo 1; else echo 0; fi > \\
    /logs/verifier/reward.txt
"""


def write_task(
    folder: Path, *, dockerfile: str = DOCKERFILE, toml: str = "", test: str = TEST
) -> Path:
    """A task whose file `answer` has to be `red`."""
    files = {
        "task.toml": toml,
        "instruction.md": "Write red into the file answer.\n",
        "environment/Dockerfile": dockerfile,
        "environment/tools/say": "echo $1\n",
        "tests/test.sh": test,
        "tests/expected": "red\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
